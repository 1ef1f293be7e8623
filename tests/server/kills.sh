# Ten times kill -9 under load, with a million keys in the state file. A charge that the server confirmed is never lost
# and never counted twice, used-up keys stay used up, and the next start is ready within a second. kills_long.sh does it
# fifty times.
source "$(dirname "$0")/kills.bash"
kills 10
finish
