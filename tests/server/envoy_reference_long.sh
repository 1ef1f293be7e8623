# The proof of envoy_reference.sh, with many more files.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/gateway.bash"
source "$(dirname "$0")/reference.bash"
WEIR_DOMAINS=${WEIR_DOMAINS:-10000}
source "$(dirname "$0")/envoy_reference.bash"
