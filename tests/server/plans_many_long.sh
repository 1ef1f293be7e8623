# plans_many.sh with nothing beside it: p99 stays under 10 ms while 100,000 subjects change their plan.
# What changes, and how, stands there.
source "$(dirname "$0")/plans_many.sh"
