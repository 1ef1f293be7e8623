# SIGSTOP for half a minute, longer than clients may take for a header: no client is cut off, and no burst passes. See
# freeze.bash.
source "$(dirname "$0")/freeze.bash"
freeze 30
finish
