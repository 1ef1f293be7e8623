# Fifty times kill -9 under load, with a million keys in the state file. See kills.sh.
source "$(dirname "$0")/kills.bash"
kills 50
finish
