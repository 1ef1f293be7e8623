# half_open.sh with nothing beside it: a peer that vanished is reaped within five seconds, by a keepalive
# of one: a second of silence and three questions.
source "$(dirname "$0")/half_open.sh"
