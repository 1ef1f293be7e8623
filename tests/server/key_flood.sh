# 300,000 new keys into a table of 10 MB, which holds less than half of them. A used-up key stays used up, memory stays
# within its budget, and others get answers. key_flood_long.sh has a hundred million.
source "$(dirname "$0")/key_flood.bash"
flood_test 300000 10000000 3 0.2
finish
