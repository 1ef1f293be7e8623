# path_readers.sh with fifty thousand spellings.
# COUNT=1000 tries it with fewer. path_readers.bash has the comparison.
source "$(dirname "$0")/path_readers.bash"
compare_readers "${COUNT:-50000}"
finish
