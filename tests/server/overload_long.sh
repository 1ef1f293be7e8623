# How long clients wait when a thread gets once, twice and three times the load that it can handle, by a schedule that
# does not wait for answers. With shedding, the p99 of all answers stays near that of a calm server. Without, it grows
# as long as the load lasts. A client beside the load sends one check after the other: those that the
# server decides are decided in time, and their share is at least half of that of all checks. Eight limits apply to each
# check, so the server's time is scarce, not the load generator's. The test prints and checks ratios.
source "$(dirname "$0")/lib.bash"

seconds=4
load() {
  timeout 600 "$program" bench --http "127.0.0.1:$http_port" --batch 500 --keys 1000 --warmup 1 --seconds "$seconds" \
    --body '{"user":"{key}"}' --json "$@"
}
# at RATE: p99 in milliseconds, how many were shed and which part was decided in percent; the same for a client
# beside it, of what was decided.
at() {
  local told asker
  timeout 600 "$python" "$(dirname "$0")/ask_on.py" "$http_port" 5 >"$work/asker" 2>&1 &
  asker=$!
  told=$(load --connections 200 --pipeline 8 --rate "$1")
  wait "$asker"
  asker=$(cat "$work/asker")
  echo "      a client beside it: $asker"
  asker_p99=$(sed -n 's/.*p99_ms=//p' <<<"$asker") decided=$(sed -n 's/^decided=\([0-9]*\).*/\1/p' <<<"$asker")
  asker_part=$(awk -F'[= ]' '{print int(100 * $2 / ($2 + $4))}' <<<"$asker")
  p99=$(awk -v n="$(number p99_ns "$told")" 'BEGIN{printf "%d", n / 1e6}')
  shed=$(number errors "$told")
  part=$((100 - 100 * shed / (seconds * $1)))
  echo "      $1 requests a second: p99 $p99 ms, $shed shed, $(number checks_per_second "$told") checks a second" \
    "answered, generator $(number generator_cores "$told") cores"
}

{
  echo "rules:"
  for i in 1 2 3 4 5 6 7 8; do echo "  - {name: r$i, per: user, limit: 100000000/minute}"; done
} >"$work/rules.yaml"
start_server --threads 1 --config "$work/rules.yaml"
most=$(awk -v n="$(number checks_per_second "$(load --connections 8)")" 'BEGIN{print int(n / 500)}')
echo "      the most that it decides is $most requests of 500 checks a second"
at $((most / 2))
calm=$p99 asker_calm=$asker_p99
is "at half of it nothing is shed" 0 "$shed"
for times in 1 2 3; do
  at $((most * times))
  p99s[times]=$p99 sheds[times]=$shed
  at_least "$times times as much: decided for one beside it, in percent (of all $part)" "$asker_part" $((part / 2))
  at_least "$times times as much: and in all" "$decided" 100
  # --shed-after is 20 ms.
  at_most "$times times as much: p99 in ms of what is decided (at half of it $asker_calm)" \
    "$asker_p99" "$(awk -v calm="$asker_calm" 'BEGIN{print (2 * calm > 60) ? 2 * calm : 60}')"
done
is "at three times as much it sheds" yes "$([ "${sheds[3]}" -gt 0 ] && echo yes)"
kill "$pid"
start_server --threads 1 --config "$work/rules.yaml" --shed-after 0
at $((most * 3))
is "and clients wait five times less than without shedding (${p99s[3]} ms, $p99 ms)" yes \
  "$([ $((5 * p99s[3])) -lt "$p99" ] && echo yes)"
is "not more than ten times --shed-after, or twice as long as at half the load ($calm ms)" yes \
  "$([ "${p99s[3]}" -le $((2 * calm > 200 ? 2 * calm : 200)) ] && echo yes)"
finish
