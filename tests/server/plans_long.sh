# plans.sh with nothing beside it: the server sees a change in the database within a second, and is fresh two seconds
# after the database is back.
source "$(dirname "$0")/plans.sh"
