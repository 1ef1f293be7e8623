# plans_many.sh with nothing beside it:
# p99 stays below 10 ms while 100,000 subjects change their plan.
source "$(dirname "$0")/plans_many.sh"
