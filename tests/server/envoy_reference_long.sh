# The proof of envoy_reference.sh with ten thousand files, in rounds of 500: neither service holds all of them at once.
# Every round has a seed of its own, which is printed; WEIR_SEED repeats them all.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/gateway.bash"
source "$(dirname "$0")/reference.bash"
WEIR_DOMAINS=${WEIR_DOMAINS:-500} WEIR_ROUNDS=${WEIR_ROUNDS:-20}
source "$(dirname "$0")/envoy_reference.bash"
