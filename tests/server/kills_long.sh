# Fifty times kill -9 under load, with a million keys in the state file: the same as kills.sh, for longer.
# What is checked stands in kills.py.
source "$(dirname "$0")/kills.bash"
kills 50
finish
