# 300,000 keys that nobody has seen before, into a table of 10 MB, which holds less than half of them: a spent
# key stays spent, memory stays within its budget, and others are answered. A hundred million: key_flood_long.sh.
source "$(dirname "$0")/key_flood.bash"
flood_test 300000 10000000 3 0.2
finish
