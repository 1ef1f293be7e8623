# Spellings of paths as real gateways and libraries read them: each that a server treats as /api/login is counted.
# path_readers.bash has the comparison; path_readers_long.sh tries many more spellings.
source "$(dirname "$0")/path_readers.bash"
compare_readers "${COUNT:-800}"
finish
