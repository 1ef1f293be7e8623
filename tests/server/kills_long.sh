# kills.sh, but fifty times.
# kills.py has the checks.
source "$(dirname "$0")/kills.bash"
kills 50
finish
