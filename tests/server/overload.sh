# More checks than a thread has time for. It answers at once what it cannot decide in time, decides the rest, and
# recovers when the load ends. overload_long.sh measures how long clients wait.
source "$(dirname "$0")/lib.bash"

# Many checks in each request, and several requests ahead on each of many connections: the server always has more to
# read, however little of the processor the load generator gets.
load() {
  timeout 600 "$program" bench --http "127.0.0.1:$http_port" --connections 64 --pipeline 8 --batch 1000 --keys 1000 \
    --warmup 0 --seconds 2 --json "$@"
}
check() { curl -s -o "$work/answer" -m 60 -w '%{http_code}' "$http/v1/check" -d '{"key":"u","limit":"1000/s"}'; }
decides() { [ "$(check)" == 200 ] && ! grep -q overload "$work/answer"; }

start_server --threads 1 --shed-after 2
load >"$work/load" &
loading=$!
sleep 1
is "/livez is answered all the time" ok "$(curl -s -m 60 "http://127.0.0.1:$admin_port/livez")"
wait "$loading"
told=$(cat "$work/load")
is "it sheds ($(number errors "$told") requests)" yes "$([ "$(number errors "$told")" -gt 0 ] && echo yes)"
has "  and says so" "503" "$told"
counts_refused "shedding" http overload "$(number errors "$told")"
is "it decides ($(number checks "$told") checks)" yes "$([ "$(number checks "$told")" -gt 10000 ] && echo yes)"
eventually "then it decides everything again" decides
kill "$pid"

# With allow, it is the same, and no request is denied.
start_server --threads 1 --shed-after 2 --on-overload allow
load >"$work/load" &
loading=$!
sleep 0.5
for _ in $(seq 20); do check >>"$work/codes"; echo >>"$work/codes"; done
wait "$loading"
is "with --on-overload allow, no request is denied" 200 "$(sort -u "$work/codes" | paste -sd' ')"
kill "$pid"

# Never: everything is decided, however long it takes.
start_server --threads 1 --shed-after 0
is "with --shed-after 0 nothing is shed" 0 "$(number errors "$(load)")"
finish
