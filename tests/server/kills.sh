# Ten times kill -9 under load, with a million keys in the state file: consumption that was told is never forgotten and
# never counted twice, spent keys stay spent, and the next start is ready within a second. Fifty: kills_long.sh.
source "$(dirname "$0")/kills.bash"
kills 10
finish
