# A server with a state file: what was charged stays charged through kill -9, in a second server beside it, while one of
# them is stopped, and through a change of size. kills.sh kills it under load.
source "$(dirname "$0")/lib.bash"
state=$work/state.weir

throttle() { redis cl.throttle "$1" 9 10 86400 | cut -d' ' -f1; }

start_server --state "$state" --keys 20000
is "seven of ten" 7 "$(allowed_of_ten user:42 7)"
job='{"key":"job","limit":"1/day","algorithm":"sliding_log"}'
has "one over HTTP, of another kind" '"allowed":true' "$(post "$job")"
kill_server
start_server --state "$state" --drain-delay 0
is "kill -9, restart: three are left" 3 "$(allowed_of_ten user:42 7)"
has "the log remembers its event" "429" "$(post "$job" | head -1)"

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
is "one is stopped, the other goes on" 10 "$(allowed_of_ten user:other 14)"
has "inspect, while in use" "capacity 20,0" "$("$program" state inspect "$state" 2>&1 | tr -d '\n')"
has "resize refuses while in use" "in use" "$("$program" state resize "$state" --keys 50000 2>&1)"
kill -CONT "$first_pid"
is "and the stopped one continues, too" 10 "$(resp_port=$first_port allowed_of_ten user:third 14)"

kill -TERM "$pid" "$first_pid"
wait "$pid" "$first_pid"
is "export has a line for each key" 5 "$("$program" state export "$state" | grep -c remaining)"
exits "resize, no process uses it" 0 weir state resize "$state" --keys 50000
start_server --state "$state"
is "what was used stays used in the new size" "1 1 1" "$(throttle user:42) $(throttle user:both) $(throttle user:third)"

# A table made for a total number of bytes.
start_server --state "$work/fitted" --memory 16000000 --drain-delay 0
bytes=$(stat -c %s "$work/fitted")
is "--memory: no larger than that, and little smaller" 1 "$((bytes <= 16000000 && bytes > 15980000))"
is "and it counts" 5 "$(allowed_of_ten user:42 5)"
stop_server
exits "resize --memory" 0 weir state resize "$work/fitted" --memory 24000000
bytes=$(stat -c %s "$work/fitted")
is "the same holds of the new size" 1 "$((bytes <= 24000000 && bytes > 23980000))"
prints "--memory: too little" "are too few: the minimum is" weir serve --http :0 --resp :0 --memory 1000

# A file that cannot be used: one line that says what to do, exit code 1, and the file is as it was.
printf 'not a table' >"$work/foreign"
for file in "$work/foreign" "$work" "$work/no/folder"; do
  refuses 1 "$file" serve --http :0 --resp :0 --state "$file"
done
is "a foreign file is left alone" "not a table" "$(cat "$work/foreign")"
finish
