# A server with a state file: what was spent stays spent through kill -9, in a second server beside it, while one of
# them is stopped, and through a change of size.
source "$(dirname "$0")/lib.bash"
state=$work/state.weir

# spend KEY TIMES: how many of so many checks against 10 a day are allowed, over RESP.
spend() {
  for ((i = 0; i < $2; ++i)); do echo "CL.THROTTLE $1 9 10 86400"; done |
    timeout 600 redis-cli -p "$resp_port" | sed -n '1~5p' | grep -c '^0$'
}
throttle() { redis cl.throttle "$1" 9 10 86400 | cut -d' ' -f1; }

start_server --state "$state" --keys 20000
is "seven of ten" 7 "$(spend user:42 7)"
job='{"key":"job","limit":"1/day","algorithm":"sliding_log"}'
has "one over HTTP, of another kind" '"allowed":true' "$(post "$job")"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
start_server --state "$state"
is "kill -9, restart: three are left" 3 "$(spend user:42 7)"
has "the log remembers its event" "429" "$(post "$job" | head -1)"

# Killed while it answers as fast as it can: what a client was told stays true.
told_all=0
for round in 1 2 3; do
  (yes "CL.THROTTLE busy:$round 999999 100 86400" | timeout 2 redis-cli -p "$resp_port" 2>/dev/null |
    grep -c '^1000000$' >"$work/told") &
  client=$!
  sleep "0.$((round * 2))"
  kill -KILL "$pid"
  wait "$pid" "$client" 2>/dev/null
  start_server --state "$state" --drain-delay 0
  told=$(cat "$work/told")
  told_all=$((told_all + told))
  left=$(redis cl.throttle "busy:$round" 999999 100 86400 0 | cut -d' ' -f3)
  spent=$((1000000 - left))
  # One request may have been charged and not told.
  is "round $round: killed after $told answers, $spent spent" yes \
    "$( ((spent == told || spent == told + 1)) && echo yes)"
done
is "answers were under way" yes "$( ((told_all > 0)) && echo yes)"

# Two servers, one file, one limit; a stopped one is no obstacle.
first_port=$resp_port first_pid=$pid
start_server --state "$state" --drain-delay 0
allowed=0
for ((i = 0; i < 7; ++i)); do
  for port in "$first_port" "$resp_port"; do
    [ "$(resp_port=$port throttle user:both)" == 0 ] && allowed=$((allowed + 1))
  done
done
is "two servers admit ten of fourteen together" 10 "$allowed"
kill -STOP "$first_pid"
is "one is stopped, the other goes on" 10 "$(spend user:other 14)"
has "inspect, while in use" "capacity 20,0" "$("$program" state inspect "$state" 2>&1 | tr -d '\n')"
has "resize refuses while in use" "in use" "$("$program" state resize "$state" --keys 50000 2>&1)"
kill -CONT "$first_pid"
is "and goes on itself" 10 "$(resp_port=$first_port spend user:third 14)"

kill -TERM "$pid" "$first_pid"
wait "$pid" "$first_pid"
is "export has a line for each key" 8 "$("$program" state export "$state" | grep -c remaining)"
"$program" state resize "$state" --keys 50000 >"$work/resized" 2>&1
is "resize, nobody uses it" 0 $?
start_server --state "$state"
is "spent stays spent in the new size" "1 1 1" "$(throttle user:42) $(throttle user:both) $(throttle user:third)"

# Made for so many bytes, all in all.
start_server --state "$work/fitted" --memory 16000000 --drain-delay 0
bytes=$(stat -c %s "$work/fitted")
is "--memory: no larger than told, and little smaller" 1 "$((bytes <= 16000000 && bytes > 15980000))"
is "and it counts" 5 "$(spend user:42 5)"
kill -TERM "$pid"
wait "$pid"
"$program" state resize "$work/fitted" --memory 24000000 >"$work/resized" 2>&1
is "resize --memory" 0 $?
bytes=$(stat -c %s "$work/fitted")
is "the same holds of the new size" 1 "$((bytes <= 24000000 && bytes > 23980000))"
has "--memory: too little" "are too few: the minimum is" \
  "$(timeout 600 "$program" serve --http :0 --resp :0 --memory 1000 2>&1)"

# A file that cannot be used: one line that says what to do, exit code 1, and the file is as it was.
printf 'not a table' >"$work/foreign"
for file in "$work/foreign" "$work" "$work/no/folder"; do
  timeout 600 "$program" serve --http :0 --resp :0 --state "$file" >"$work/refused" 2>&1
  is "--state ${file#"$work"}: exit code" 1 $?
  is "--state ${file#"$work"}: one line" 1 "$(wc -l <"$work/refused")"
  has "--state ${file#"$work"}: names the file" "$file" "$(cat "$work/refused")"
done
is "a foreign file is left alone" "not a table" "$(cat "$work/foreign")"
finish
