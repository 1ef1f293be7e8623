# A hundred million keys that nobody has seen before, into a table of 256 MiB: the same as key_flood.sh, for longer.
# KEYS=10000000 tries it with fewer. What is checked stands in key_flood.bash.
source "$(dirname "$0")/key_flood.bash"
flood_test "${KEYS:-100000000}" 268435456 200 1.5
finish
