# Twenty reloads and five upgrades under 2,000 new connections a second: none is refused or reset, and one key is
# charged exactly what was granted. RATE and DURATION (seconds) try it with less.
source "$(dirname "$0")/upgrade_load.bash"
upgrade_under_load "${RATE:-2000}" "${DURATION:-60}" 20 5
finish
