# hash_flood.sh with a million keys of each family, and nothing beside it: the server does at least 80 % of what it does
# for random keys.
count=${COUNT:-1000000}
source "$(dirname "$0")/hash_flood.sh"
