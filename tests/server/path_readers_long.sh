# Spellings of paths as real gateways and libraries read them, as in path_readers.sh, but fifty thousand of them.
# COUNT=1000 tries it with fewer. What is compared, and how, stands in path_readers.bash.
source "$(dirname "$0")/path_readers.bash"
compare_readers "${COUNT:-50000}"
finish
