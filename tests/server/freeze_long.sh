# SIGSTOP for half a minute, longer than clients may take for a header: still nobody is blamed, and no burst passes.
# See freeze.bash.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/freeze.bash"
freeze 30
finish
