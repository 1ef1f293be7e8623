# More checks than a thread has time for: what it cannot decide in time is answered at once, the rest is decided, and
# when the load ends, so does that. How long everybody waits meanwhile is measured by overload_long.sh.
source "$(dirname "$0")/lib.bash"

# number NAME JSON: of the outcome of a bench.
number() { sed "s/.*\"$1\": \([0-9.]*\).*/\1/" <<<"$2"; }
load() { # many checks in each request, from many connections at once
  timeout 600 "$program" bench --http "127.0.0.1:$http_port" --connections 64 --batch 1000 --keys 1000 --warmup 0 \
    --seconds 2 --json "$@"
}
check() { curl -s -o "$work/answer" -m 60 -w '%{http_code}' "$http/v1/check" -d '{"key":"u","limit":"1000/s"}'; }
decides() { [ "$(check)" == 200 ] && ! grep -q overload "$work/answer"; }

start_server --threads 1 --shed-after 2
load >"$work/load" &
loading=$!
sleep 1
is "whether it lives is answered all the time" ok "$(curl -s -m 60 "http://127.0.0.1:$admin_port/livez")"
wait "$loading"
told=$(cat "$work/load")
is "it sheds ($(number errors "$told") requests)" yes "$([ "$(number errors "$told")" -gt 0 ] && echo yes)"
has "  and says so" "503" "$told"
counts_refused "shedding" http overload "$(number errors "$told")"
is "it decides ($(number checks "$told") checks)" yes "$([ "$(number checks "$told")" -gt 10000 ] && echo yes)"
is "then it decides everything again" yes "$(until_true 10 decides && echo yes)"
kill "$pid"

# Allow: the same, and nobody is denied.
start_server --threads 1 --shed-after 2 --on-overload allow
load >"$work/load" &
loading=$!
sleep 0.5
for _ in $(seq 20); do check >>"$work/codes"; echo >>"$work/codes"; done
wait "$loading"
is "who is allowed unseen is never denied" 200 "$(sort -u "$work/codes" | paste -sd' ')"
kill "$pid"

# Never: everything is decided, however long it takes.
start_server --threads 1 --shed-after 0
is "with --shed-after 0 nothing is shed" 0 "$(number errors "$(load)")"
finish
