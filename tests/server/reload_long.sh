# reload.sh with nothing beside it: whatever is wrong with the config, it is read and refused within a second.
# What is damaged, and how, stands there.
source "$(dirname "$0")/reload.sh"
