# Spellings of paths as real gateways and libraries read them: none that is served as /api/login goes uncounted.
# What is compared, and how, stands in path_readers.bash; path_readers_long.sh tries many more spellings.
source "$(dirname "$0")/path_readers.bash"
compare_readers "${COUNT:-800}"
finish
