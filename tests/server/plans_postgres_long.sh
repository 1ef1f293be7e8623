# plans_postgres.sh with nothing beside it: a change in the database is seen within a second, and it is fresh again
# two seconds after it can be asked again. What happens to the database, and how, stands there.
source "$(dirname "$0")/plans_postgres.sh"
