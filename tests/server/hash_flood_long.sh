# hash_flood.sh with a million keys of each kind and nothing beside it: the server reaches at least 80 % of its rate for
# random keys.
count=${COUNT:-1000000}
source "$(dirname "$0")/hash_flood.sh"
