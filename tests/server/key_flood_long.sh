# A hundred million keys that nobody has seen before, into a table of 256 MiB. See key_flood.bash.
source "$(dirname "$0")/key_flood.bash"
flood_test "${KEYS:-100000000}" 268435456
finish
