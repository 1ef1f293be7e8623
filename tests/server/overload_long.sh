# How long everybody waits when a thread is asked for more than it can do: once, twice and four times as much, by a
# schedule that does not wait for answers. With shedding, the p99 of all answers stays near that of a calm server;
# without, it grows for as long as the load lasts. Ratios are asserted, and shown.
source "$(dirname "$0")/lib.bash"

number() { sed "s/.*\"$1\": \([0-9.]*\).*/\1/" <<<"$2"; }
load() {
  timeout 120 "$program" bench --http "127.0.0.1:$http_port" --batch 500 --keys 1000 --warmup 1 --seconds 4 --json "$@"
}
# at RATE: p99 in milliseconds, how many were shed, how many checks were answered a second
at() {
  local told
  told=$(load --connections 200 --pipeline 8 --rate "$1")
  p99=$(awk -v n="$(number p99_ns "$told")" 'BEGIN{printf "%d", n / 1e6}')
  shed=$(number errors "$told")
  echo "      $1 requests a second: p99 $p99 ms, $shed shed, $(number checks_per_second "$told") checks a second" \
    "answered, generator $(number generator_cores "$told") cores"
}

start_server --threads 1
most=$(awk -v n="$(number checks_per_second "$(load --connections 8)")" 'BEGIN{print int(n / 500)}')
echo "      the most that it decides is $most requests of 500 checks a second"
at $((most / 2))
calm=$p99
is "at half of it nothing is shed" 0 "$shed"
for times in 1 2 4; do
  at $((most * times))
  p99s[times]=$p99 sheds[times]=$shed
done
is "at four times as much it sheds" yes "$([ "${sheds[4]}" -gt 0 ] && echo yes)"
kill "$pid"
start_server --threads 1 --shed-after 0
at $((most * 4))
is "and everybody waits five times less than without shedding (${p99s[4]} ms, $p99 ms)" yes \
  "$([ $((5 * p99s[4])) -lt "$p99" ] && echo yes)"
is "not more than ten times --shed-after, or twice as long as at half the load ($calm ms)" yes \
  "$([ "${p99s[4]}" -le $((2 * calm > 200 ? 2 * calm : 200)) ] && echo yes)"
finish
