# A fleet whose network fails for a moment. fleet_fault_net_long.sh does the same for longer, on a quiet machine, and
# compares the times with docs/guarantees.md.
source "$(dirname "$0")/fleet_fault_net.bash"
net_faults 0 2
finish
