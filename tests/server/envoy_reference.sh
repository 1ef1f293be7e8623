# The proof that Weir answers as envoyproxy/ratelimit does: the same random files, the same random requests to POST
# /json of both within one second, every answer compared. envoy_reference.py says how, envoy_model.py what may differ.
# Where the service is not available, Weir is compared with the model alone. The seed is printed; WEIR_SEED repeats it.
# envoy_reference_long.sh has many more files.
source "$(dirname "$0")/envoy_reference.bash"
