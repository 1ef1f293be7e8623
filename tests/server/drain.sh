# SIGTERM under load: first the server reports that it is not ready and goes on, then it accepts no connections and
# finishes the requests in flight. A load balancer that looks at /readyz sees no failure. A second signal ends it at
# once. drain_long.sh does the same alone on the machine, with at least 5,000 requests a second.
source "$(dirname "$0")/lib.bash"
"$python" -c 'import grpc' 2>/dev/null || missing grpc "has no client here (needs python3-grpcio)"
here=$2/tests/server
body='{"key":"load","limit":"1000000/minute"}'
status_of() { code_of "http://127.0.0.1:$1/$2"; }
is_unready() { [ "$(status_of "$1" readyz)" == 503 ]; }
is_closed() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
told() { grep -q "$1" "$work/health"; }

start_server --drain-delay 4s
: >"$work/health"
timeout 600 "$python" "$here/watch_health.py" "$grpc_port" watch >"$work/health" 2>"$work/err_health" &
timeout 600 "$python" "$here/new_connections.py" "$http_port" 1000 30 "$body" --keep 60 --ready "$admin_port" \
  >"$work/load" 2>"$work/err_load" &
load=$!
eventually "the watcher receives SERVING" told '^SERVING'
sleep 1
is "ready, under load" "200 200" "$(status_of "$http_port" readyz) $(status_of "$admin_port" readyz)"
kill -TERM "$pid"
began=$(now_us)
is "SIGTERM: not ready, at once" "yes yes" \
  "$(until_true 3 is_unready "$http_port" && echo yes) $(until_true 3 is_unready "$admin_port" && echo yes)"
eventually "the watcher receives NOT_SERVING" told NOT_SERVING
answer=$(post "$body")
has "but checks are answered" "HTTP/1.1 200 OK" "$answer"
has "each as the last of its connection" "Connection: close" "$answer"
is "and it is alive" 200 "$(status_of "$http_port" livez)"
eventually "then it accepts no connections" is_closed "$http_port"
wait "$load"
load=$(cat "$work/load")
echo "      $load"
has "no client sees a failure" "failed=0 " "$load"
pace "requests a second" "$(sed 's/.*answers_a_second=\([0-9]*\).*/\1/' <<<"$load")" 5000
wait "$pid"
is "exit code 0" 0 $?
took "seconds until it is gone" "$(seconds_since "$began")" 10
is "the watcher's stream was ended" UNAVAILABLE "$(until_true 5 told UNAVAILABLE && tail -1 "$work/health")"

# The delay is a setting; SIGINT has none.
start_server --drain-delay 10min
began=$(now_us)
ends_well "SIGINT: exit code" INT
took "SIGINT does not wait: seconds" "$(seconds_since "$began")" 1
# stop_twice NAME CODE: SIGTERM waits, a second one does not.
stop_twice() {
  kill -TERM "$pid"
  eventually "$1: SIGTERM waits" is_unready "$http_port"
  began=$(now_us)
  stop_server
  is "$1: a second signal: exit code" "$2" $?
  took "$1: it does not wait: seconds" "$(seconds_since "$began")" 1
}
start_server --drain-delay 10min
stop_twice "nothing in flight" 0

# begin_request: one that is never ended, on the descriptor `half`.
begin_request() {
  exec {half}<>"/dev/tcp/127.0.0.1/$http_port"
  printf 'POST /v1/check HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n' >&"$half"
  IFS= read -r -t 60 -u "$half" _
}
# A second signal while there is load and a request is half there.
start_server --drain-delay 10min --drain-max 60s
begin_request
timeout 600 "$program" bench --resp "127.0.0.1:$resp_port" --rate 5000 --connections 20 --seconds 20 \
  >"$work/bench" 2>&1 &
load=$!
has_load() { [ "$(metric 'weir_requests_total{protocol="resp"}')" -gt 5000 ]; }
until_true 20 has_load || is "there is load" yes no
stop_twice "under load" 1  # a request was left without an answer
kill "$load" 2>/dev/null
exec {half}>&-

# What is in flight is waited for, up to --drain-max.
start_server --drain-delay 0 --drain-max 1
begin_request
stop_server
is "a client that never ends its request: exit code" 1 $?
refuses 1 "--drain-delay: 'soon' is not a time of up to a day; write it like 500ms, 5s or 2min" serve --drain-delay soon
finish
