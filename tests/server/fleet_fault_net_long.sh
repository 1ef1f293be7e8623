# A fleet whose network fails for 15 seconds, and is bad for 30: fleet_fault_net.sh on a quiet machine, with the
# times of docs/guarantees.md.
source "$(dirname "$0")/fleet_fault_net.bash"
net_faults 15 30
finish
