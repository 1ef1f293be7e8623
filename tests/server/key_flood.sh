# Half a million keys that nobody has seen before, into a table of 13 MiB, which holds less than half of them: a spent
# key stays spent, memory stays within its budget, and others are answered. A hundred million: key_flood_long.sh.
source "$(dirname "$0")/key_flood.bash"
flood_test 500000 13500000
finish
