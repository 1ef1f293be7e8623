# Starting and stopping: ports in use, signals, requests in flight.
# A stop finishes what was begun, closes what is idle, and does not wait when it is told twice.
source "$(dirname "$0")/lib.bash"
start_server --drain-delay 0

# Addresses that cannot be had: one line, the fix, exit code 1.
# refused NAME PART ARGUMENTS...
refused() {
  local name=$1 part=$2 code
  shift 2
  timeout 600 "$program" serve "$@" >"$work/refused" 2>&1
  code=$?
  is "$name: exit code" 1 "$code"
  has "$name: says why" "$part" "$(cat "$work/refused")"
  is "$name: in one line" 1 "$(wc -l <"$work/refused")"
}
refused "HTTP port in use" "the port is in use. Choose another, or any free one with --http 127.0.0.1:0" \
  --http "127.0.0.1:$http_port" --resp :0
refused "RESP port in use" "--resp 127.0.0.1:0" --http :0 --resp "127.0.0.1:$resp_port"
refused "an address of another machine" "this machine has no such address" --http 192.0.2.1:0 --resp :0

# Many connections at once, all of them answered.
for i in $(seq 200); do
  exec {socket}<>"/dev/tcp/127.0.0.1/$resp_port" && sockets[i]=$socket
  printf 'PING\r\n' >&"${sockets[i]}"
done
pongs=0
for i in $(seq 200); do
  IFS= read -r -t 10 -u "${sockets[i]}" line && [[ "$line" == +PONG* ]] && pongs=$((pongs + 1))
done
is "200 connections are served" 200 "$pongs"

# A request that is half there when the signal comes is finished; an idle connection is closed.
exec {half}<>"/dev/tcp/127.0.0.1/$http_port"
body='{"key":"half","limit":"1/year"}'
printf 'POST /v1/check HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n' ${#body} >&"$half"
IFS= read -r -t 10 -u "$half" line
has "the header has arrived" "100 Continue" "$line"
kill -TERM "$pid"
refuses_connections() { ! (exec 3<>"/dev/tcp/127.0.0.1/$resp_port") 2>/dev/null; }
is "SIGTERM: no new connections" yes "$(until_true 10 refuses_connections && echo yes)"
is "idle connections are closed" "" "$(timeout 10 cat <&"${sockets[7]}")"
is "but not while a request is in flight" yes "$(kill -0 "$pid" && echo yes)"
printf '%s' "$body" >&"$half"
answer=$(timeout 10 cat <&"$half" | tr -d '\r')
has "which is answered" "HTTP/1.1 200 OK" "$answer"
has "and told that this is the end" "Connection: close" "$answer"
exec {half}>&-
is "then it is gone" yes "$(until_true 10 is_gone "$pid" && echo yes)"
wait "$pid"
is "with exit code 0" 0 $?

start_server
kill -INT "$pid"
wait "$pid"
is "SIGINT, nothing in flight: exit code 0" 0 $?

# A second signal does not wait for a client that never finishes.
start_server --drain-delay 0
exec {half}<>"/dev/tcp/127.0.0.1/$resp_port"
printf 'PING\r\n*1\r\n$4\r\nPI' >&"$half"
IFS= read -r -t 10 -u "$half" line
kill -TERM "$pid"
is "the first signal waits for it" yes "$(until_true 10 refuses_connections && kill -0 "$pid" && echo yes)"
kill -TERM "$pid"
is "the second does not" yes "$(until_true 5 is_gone "$pid" && echo yes)"
wait "$pid"
is "and the exit code tells" 1 $?
is "and so does a word" "weir: stopped before every request in flight was answered" "$(cat "$work"/err*)"
finish
