# half_open.sh with nothing beside it: the server closes the connection of a vanished peer within five seconds
# with --keepalive 1: a second of silence, then three probes.
source "$(dirname "$0")/half_open.sh"
