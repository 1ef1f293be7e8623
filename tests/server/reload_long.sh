# reload.sh with nothing beside it:
# the server reads and refuses every bad config within a second.
source "$(dirname "$0")/reload.sh"
