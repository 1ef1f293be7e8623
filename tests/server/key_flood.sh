# Three million keys that nobody has seen before, into a table of 77 MiB: a spent key stays spent, memory stays within
# its budget, and others are answered. The same with a hundred million is key_flood_long.sh.
source "$(dirname "$0")/key_flood.bash"
flood_test 3000000 80740352
finish
