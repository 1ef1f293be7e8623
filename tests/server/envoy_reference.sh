# The proof that Weir answers as envoyproxy/ratelimit does: the same random files, the same random requests to POST
# /json of both within one second, and every answer compared. envoy_reference.py tells how, envoy_model.py what may
# differ. Where the service cannot be had, Weir is held to the model of it alone.
# The seed is printed; WEIR_SEED repeats it. envoy_reference_long.sh asks about many more files.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/gateway.bash"
source "$(dirname "$0")/reference.bash"
source "$(dirname "$0")/envoy_reference.bash"
