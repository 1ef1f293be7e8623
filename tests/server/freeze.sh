# SIGSTOP for some seconds, then SIGCONT: no burst, no storm of timers, and the server is ready. freeze_long.sh waits
# longer than any timeout of the server.
source "$(dirname "$0")/freeze.bash"
freeze 2
finish
