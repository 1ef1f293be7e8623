# `weir bench` on the real server: every listener, closed and open loop, and its errors. Nothing here is about speed:
# a run takes a part of a second, and the machine may be busy. The test also stops the server for a while, and the
# bench must count that time.
source "$(dirname "$0")/lib.bash"
start_server --config "$2/bench/server/weir.yaml" --keys 200000

# bench ARGUMENTS...: for $seconds; leaves what it says in `out` and its exit code in `code`.
seconds=0.25
bench() {
  out=$(timeout 600 "$program" bench --warmup 0.05 --seconds "$seconds" "$@" 2>&1)
  code=$?
}
# bench_answered ARGUMENTS...: the same, for longer if no answer came. Leaves for how long in `seconds`.
bench_answered() {
  for seconds in 0.25 2 8 32; do
    bench "$@"
    [[ $out == *"no answer from"* ]] || return
  done
}
field() { number "$1" "$out"; }
# clean NAME ARGUMENTS...: there are answers, and none of them denies or is an error.
clean() {
  exits "$1: exit code" 0 bench_answered --json "${@:2}"
  at_least "$1: answers" "$(field checks)" 1
  is "$1: none denied, no errors" "0 0" "$(field denied) $(field errors)"
  is "$1: times in order" yes \
    "$([ "$(field p50_ns)" -gt 0 ] && [ "$(field p50_ns)" -le "$(field p99_ns)" ] &&
      [ "$(field p99_ns)" -le "$(field max_ns)" ] && echo yes)"
}
listeners=("--resp :$resp_port" "--http :$http_port")
[ -n "$grpc_port" ] && listeners+=("--grpc :$grpc_port") || echo "skipped: this server has no gRPC listener"
for listener in "${listeners[@]}"; do
  clean "$listener" $listener --connections 5
  clean "$listener at a rate" $listener --connections 5 --rate 1000
  is "$listener at a rate: no more than that" yes \
    "$(awk -v checks="$(field checks)" -v seconds="$seconds" 'BEGIN {if (checks <= 1000 * seconds + 100) print "yes"}')"
  clean "$listener, two threads" $listener --connections 4 --threads 2
done
clean "pipelined HTTP" --http ":$http_port" --pipeline 8
clean "batches" --http ":$http_port" --batch 100 --connections 2
is "batches: so many checks each" 0 $(($(field checks) % 100))
clean "any path" --http ":$http_port" --path /v1/check --body '{"key":"{key}","limit":"1000000/s"}'
clean "any command" --resp ":$resp_port" --command 'ECHO {key}'
clean "the server's processor time" --resp ":$resp_port" --pid "$pid"
is "is printed" yes "$([ "$(field server_ns_per_check)" -gt 0 ] && echo yes)"

bench_answered --json --resp ":$resp_port" --each-key --keys 3000 --connections 3 --threads 2
is "each key once" "0 3000" "$code $(field checks)"
bench_answered --json --resp ":$resp_port" --keys 1 --command 'CL.THROTTLE one 9 1 1000 1' --connections 1 --pipeline 1
is "denials are counted" yes "$([ "$(field denied)" -gt 0 ] && [ "$(field errors)" == 0 ] && echo yes)"
bench_answered --json --http ":$http_port" --path /v1/check --body '{"key":"two","limit":"1/year"}'
is "and over HTTP" yes "$([ "$(field denied)" -gt 0 ] && [ "$(field errors)" == 0 ] && echo yes)"
bench_answered --json --http ":$http_port" --batch 10 --body '{"key":"three","limit":"1/year"}'
is "and in batches" yes "$([ "$(field denied)" -gt 0 ] && [ "$(field errors)" == 0 ] && echo yes)"

# A server whose only answer comes soon after the warm-up, while the bench waits for it since before.
"$python" -c '
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client = server.accept()[0]
    client.recv(100)
    time.sleep(0.085)
    client.sendall(b"+PONG\r\n")
    client.recv(100)' >"$work/slow_port" 2>/dev/null &
server_pids+=($!)
until_true 60 test -s "$work/slow_port"
out=$("$program" bench --warmup 0.075 --seconds 0.25 --json --resp ":$(cat "$work/slow_port")" --connections 1 \
  --pipeline 1 --command PING 2>&1)
is "the answer is counted with its time, or not at all" yes \
  "$([[ $out == *"no answer from"* || $(field p50_ns) -ge 85000000 ]] && echo yes)"

bench_answered --resp ":$resp_port"
has "the text has percentiles" "p99.9" "$out"

# begin_bench: a bench in the background, of 1000 requests a second for $seconds. end_bench waits for it, and leaves
# what bench() does. How soon this script stops the server depends on the machine. So all times grow with $seconds, and
# a bench that was stopped at a wrong time is repeated with more seconds.
begin_bench() {
  began=$(now_us)
  timeout 600 "$program" bench --warmup 0.05 --seconds "$seconds" --json --resp ":$resp_port" --connections 2 \
    --rate 1000 >"$work/bench" 2>&1 &
  bench_pid=$!
}
end_bench() {
  wait "$bench_pid"
  code=$?
  out=$(<"$work/bench")
}
# await_bench QUEUES: until the server has a connection with such queues, as /proc/net/tcp prints them.
await_bench() {
  local connection=" [0-9A-F]*:$(printf %04X "$resp_port") [0-9A-F]*:[0-9A-F]* 01 $1"
  until grep -q "$connection" /proc/net/tcp /proc/net/tcp6 || has_ended "$bench_pid"; do sleep 0.01; done
}
# part_of_it N: sleeps for an Nth of $seconds.
part_of_it() { sleep "$(awk -v n="$1" -v seconds="$seconds" 'BEGIN {print seconds / n}')"; }

# A third of the requests are due while the server stands still: that many have waited, not one a connection.
for seconds in 1.5 6 24; do
  kill -STOP "$pid"
  begin_bench
  await_bench "[0-9A-F]*:0*[1-9A-F]" # has sent requests
  part_of_it 3
  kill -CONT "$pid"
  end_bench
  [[ $out == *"no answer from"* ]] || break
done
is "a stall is seen in the tail: p90 $(field p90_ns) ns" yes "$([ "$(field p90_ns)" -gt 200000000 ] && echo yes)"
# It does not come back in time: what was due and never answered counts, too.
is_too_late() { awk -v at="$stopped_at" -v seconds="$seconds" 'BEGIN {exit !(at > 0.7 * seconds)}'; }
for seconds in 2 8 32; do
  begin_bench
  await_bench ""
  part_of_it 6
  kill -STOP "$pid"
  stopped_at=$(seconds_since "$began")
  end_bench
  kill -CONT "$pid"
  [[ $out == *"no answer from"* ]] || is_too_late || break
done
is "some are never answered ($(field unanswered))" yes "$([ "$(field unanswered)" -gt 0 ] && echo yes)"
is "and have waited longest: p90 $(field p90_ns) ns" yes "$([ "$(field p90_ns)" -gt 1000000000 ] && echo yes)"
seconds=0.25
kill -STOP "$pid"
bench --json --resp ":$resp_port" --connections 2 --rate 1000
kill -CONT "$pid"
is "no answers at all" 1 "$code"
has "are reported" "no answer from 127.0.0.1:$resp_port" "$out"

# reports CODE PART ARGUMENTS...: bench ends with this exit code, and its last line contains PART.
reports() {
  exits "${*:3}: exit code" "$1" bench_answered "${@:3}"
  has "${*:3}: hint" "$2" "$(tail -1 <<<"$out")"
}
reports 1 "no server listens on 127.0.0.1:1; start one first" --resp :1
reports 1 "closed a connection without an answer" --http ":$resp_port"
reports 1 "not RESP" --resp ":$http_port"
reports 1 "invalid HTTP/2" --grpc ":$http_port"
reports 1 "every answer was an error: 'ERR unknown command" --resp ":$resp_port" --command 'FROBNICATE {key}'
reports 1 "every answer was an error: 'HTTP status 404'" --http ":$http_port" --path /nothing
reports 1 "no process has the id" --resp ":$resp_port" --pid 1073741823
reports 2 "the port is missing" --resp localhost
reports 2 "See weir bench --help" --resp ":$resp_port" --http ":$http_port"
reports 2 "See weir bench --help" --connections 5
reports 2 "--streams" --grpc :1 --pipeline 5
reports 2 "--pipeline" --resp :1 --streams 5
reports 2 "does not begin with /" --http :1 --path auth
reports 2 "--entry user={key}" --grpc :1 --entry user
has "help leads with examples" "weir bench --resp :6380" "$("$program" bench --help | head -3)"
still_answers "after all that"
finish
