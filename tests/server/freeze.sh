# SIGSTOP for some seconds, then SIGCONT: no burst, no storm of timers, and it is ready.
# The same for longer than any patience of the server is in freeze_long.sh.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/freeze.bash"
freeze 2
finish
