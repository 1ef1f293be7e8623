# Several loops, one limit: exactly the limit passes, whichever loop and listener the requests reach. The kernel spreads
# the connections over the loops, so all of them get some.
source "$(dirname "$0")/lib.bash"
start_server --threads 4 --drain-delay 0

# Sixteen clients at once.
asked=$(seq 16 | xargs -P 16 -I{} bash -c "
  for i in \$(seq 50); do echo 'WEIR.LIMIT shared 500/year ALGORITHM fixed_window'; done |
    timeout 600 redis-cli -p $resp_port | grep -A1 '^allowed' | grep -c '^1'" | awk '{sum += $1} END {print sum}')
is "500 of 800 pass" 500 "$asked"
body='{"key":"shared","limit":"500/year","algorithm":"fixed_window"}'
has "HTTP knows of them" '"remaining":0' "$(post "$body")"
is "and denies" "HTTP/1.1 429 Too Many Requests" "$(post "$body" | head -1)"

# All loops stop, and a loop that has nothing to do does not keep the others from finishing.
ends_well "it stops"
finish
