# Starting and stopping: ports in use, signals, requests in flight. A stop finishes the requests in flight, closes idle
# connections, and ends at once on a second signal.
source "$(dirname "$0")/lib.bash"
start_server --drain-delay 0

# Addresses that it cannot listen on: one line with the fix.
refuses 1 "the port is in use. Choose another, or any free one with --http 127.0.0.1:0" \
  serve --http "127.0.0.1:$http_port" --resp :0 --grpc :0 --admin :0
refuses 1 "--resp 127.0.0.1:0" serve --http :0 --resp "127.0.0.1:$resp_port" --grpc :0 --admin :0
refuses 1 "this machine has no such address" serve --http 192.0.2.1:0 --resp :0 --grpc :0 --admin :0

exec {idle}<>"/dev/tcp/127.0.0.1/$resp_port"
printf 'PING\r\n' >&"$idle"
IFS= read -r -t 60 -u "$idle" line
has "a connection is served" "+PONG" "$line"

# A request that is half there when the signal comes is finished; an idle connection is closed.
exec {half}<>"/dev/tcp/127.0.0.1/$http_port"
body='{"key":"half","limit":"1/year"}'
printf 'POST /v1/check HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n' ${#body} >&"$half"
IFS= read -r -t 60 -u "$half" line
has "the header has arrived" "100 Continue" "$line"
kill -TERM "$pid"
refuses_connections() { ! (exec 3<>"/dev/tcp/127.0.0.1/$resp_port") 2>/dev/null; }
eventually "SIGTERM: no new connections" refuses_connections
is "idle connections are closed" "" "$(timeout 60 cat <&"$idle")"
is "but not while a request is in flight" yes "$(kill -0 "$pid" && echo yes)"
printf '%s' "$body" >&"$half"
answer=$(timeout 60 cat <&"$half" | tr -d '\r')
has "which is answered" "HTTP/1.1 200 OK" "$answer"
has "as the last of its connection" "Connection: close" "$answer"
exec {half}>&-
eventually "then it is gone" is_gone "$pid"
wait "$pid"
is "with exit code 0" 0 $?

start_server
ends_well "SIGINT, nothing in flight: exit code 0" INT

# A second signal does not wait for a client that never finishes.
start_server --drain-delay 0
exec {half}<>"/dev/tcp/127.0.0.1/$resp_port"
printf 'PING\r\n*1\r\n$4\r\nPI' >&"$half"
IFS= read -r -t 60 -u "$half" line
kill -TERM "$pid"
is "the first signal waits for it" yes "$(until_true 10 refuses_connections && kill -0 "$pid" && echo yes)"
kill -TERM "$pid"
eventually "the second does not" is_gone "$pid"
wait "$pid"
is "and the exit code is 1" 1 $?
is "and so does the log" "weir: stopped before every request in flight was answered" "$(cat "$work"/err*)"
finish
