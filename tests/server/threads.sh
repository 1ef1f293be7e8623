# Several loops, one limit: whichever of them is asked, through whichever door, exactly as many pass as may.
# The kernel deals the connections out among the loops, so that all of them are asked.
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
kill -TERM "$pid"
wait "$pid"
is "it stops" 0 $?
finish
