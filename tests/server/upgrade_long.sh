# Twenty reloads and five upgrades under 2,000 new connections a second: none is refused or reset, and one key passes
# exactly as often as it may.
source "$(dirname "$0")/lib.bash"
source_dir=$2
source "$(dirname "$0")/upgrade_load.bash"
upgrade_under_load 2000 60 20 5
finish
