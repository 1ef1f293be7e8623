# key_flood.sh with a hundred million new keys and a table of 256 MiB. KEYS=10000000 tries it with fewer. key_flood.bash
# has the checks.
source "$(dirname "$0")/key_flood.bash"
flood_test "${KEYS:-100000000}" 268435456 200 1.5
finish
