# envoy_reference.sh with ten thousand files, in rounds of 500, because neither service holds all of them at once. Each
# round has its own seed, which is printed; WEIR_SEED repeats them all.
WEIR_DOMAINS=${WEIR_DOMAINS:-500} WEIR_ROUNDS=${WEIR_ROUNDS:-20}
source "$(dirname "$0")/envoy_reference.bash"
