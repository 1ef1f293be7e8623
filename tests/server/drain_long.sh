# drain.sh with nothing beside it: SIGTERM under 5,000 requests a second, and a second signal that ends the server
# within a second while a request is in flight.
source "$(dirname "$0")/drain.sh"
