# half_open.sh with nothing beside it: the server closes the connection of a vanished peer within five seconds, with a
# keepalive of one: a second of silence and three probes.
source "$(dirname "$0")/half_open.sh"
