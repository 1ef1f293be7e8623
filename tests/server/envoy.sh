# The real Envoy with the configs of examples/envoy in front of an application: what its clients see, with its rate
# limit filter and our gRPC, and with its external authorization and our HTTP.
source "$(dirname "$0")/gateway.bash"
provide envoy

start_app
start_server --config "$(rules_of envoy)"
free_port front admin
place envoy "$front" "$admin"
run_envoy() {
  start_gateway "$front" "$envoy" -c "$work/envoy/$1" --concurrency 1 --disable-hot-restart --log-level warning
}

# stat NAME: a counter of Envoy; 0 if it was never touched.
stat() {
  local value
  value=$(curl -s -m 60 "http://127.0.0.1:$admin/stats?filter=^${1//./\\.}\$" | sed 's/.*: //')
  echo "${value:-0}"
}

# --- the rate limit filter --------------------------------------------------------------------------------------------
# Where other tests run beside this one, any call may take longer than 20 ms. So the steps that count use 5 s.
sed 's/timeout: 0.02s/timeout: 5s/' "$work/envoy/ratelimit.yml" >"$work/envoy/patient.yml"
run_envoy patient.yml
answer=$(via "$front" /a)
is "the first: status" "HTTP/1.1 200 OK" "$(head -1 <<<"$answer")"
has "the first: Envoy's X-RateLimit-Limit" "5, 5;w=31536000" "$(header x-ratelimit-limit "$answer")"
is "the first: X-RateLimit-Remaining" 4 "$(header x-ratelimit-remaining "$answer")"
has "the first: our RateLimit" ";r=4;t=" "$(header ratelimit "$answer")"
is "the first: no Retry-After" "" "$(header retry-after "$answer")"
is "the first: the application's own headers" yes "$(header x-app "$answer")"
is "five pass, then 429" "200 200 200 200 429 429" "$(statuses 6 "$front" /a)"
answer=$(via "$front" /a)
is "denied: status" "HTTP/1.1 429 Too Many Requests" "$(head -1 <<<"$answer")"
is "denied: by Envoy" true "$(header x-envoy-ratelimited "$answer")"
retry=$(header retry-after "$answer")
is "denied: our Retry-After" yes "$([[ "$retry" =~ ^[1-9][0-9]*$ ]] && echo yes || echo "no: $retry")"
has "denied: our RateLimit" ";r=0;t=" "$(header ratelimit "$answer")"
has "denied: Envoy's X-RateLimit-Limit" "5, 5;w=31536000" "$(header x-ratelimit-limit "$answer")"
is "denied: Envoy's X-RateLimit-Remaining" 0 "$(header x-ratelimit-remaining "$answer")"
reset=$(header x-ratelimit-reset "$answer")
is "denied: Envoy's X-RateLimit-Reset is a time to wait" yes "$([ "$reset" -le 63072000 ] && echo yes || echo "$reset")"
has "denied: our body" "Rate limit exceeded" "$answer"

is "another address is another client" "200 200" "$(statuses 2 "$front" /a --interface 127.0.0.2)"
is "no client can claim another address" 429 "$(statuses 1 "$front" /a -H 'X-Forwarded-For: 192.0.2.7')"
from=(--interface 127.0.0.3)
is "a second descriptor: three of its key, the address has more" "200 200 200 429" \
  "$(statuses 4 "$front" /a "${from[@]}" -H 'x-api-key: k1')"
from=(--interface 127.0.0.7)
answer=$(via "$front" /a "${from[@]}" -H 'x-api-key: k2')
is "the headers show the tightest of both" 2 "$(header x-ratelimit-remaining "$answer")"
has "and both" "5;w=31536000" "$(header x-ratelimit-limit "$answer")"
has "a POST's body reaches the application" "app POST /a 7" "$(via "$front" /a "${from[@]}" -d user=me)"

# --- permits that are taken when the stream is done -------------------------------------------------------------------
from=(--interface 127.0.0.4 -H 'x-api-key: d1')
is "a download" 200 "$(statuses 1 "$front" /download "${from[@]}")"
is "each download charges its bytes at its end, until none are left" 429 \
  "$(for _ in $(seq 20); do statuses 1 "$front" /download "${from[@]}"; sleep 0.05; done | grep -m1 429)"
is "another key has its own" 200 "$(statuses 1 "$front" /download -H 'x-api-key: d2')"

is "no call failed" "0 0" "$(stat cluster.app.ratelimit.error) $(stat cluster.app.ratelimit.failure_mode_allowed)"
is "Envoy counted its denials" yes "$([ "$(stat cluster.app.ratelimit.over_limit)" -ge 5 ] && echo yes)"
is "over one connection" 1 "$(stat cluster.weir.upstream_cx_total)"

stop "$gateway_pid"

# --- within 20 ms, as shipped -----------------------------------------------------------------------------------------
run_envoy ratelimit.yml
curl -s -m 60 -o /dev/null "http://127.0.0.1:$front/a?[1-400]"
late=$(stat cluster.app.ratelimit.error)
echo "      $late of 400 calls took Envoy longer than 20 ms"
is "and all were made" 400 "$((late + $(stat cluster.app.ratelimit.ok) + $(stat cluster.app.ratelimit.over_limit)))"
is "weir frozen: a request passes in time" 200 "$(while_frozen "$front" /a)"
is "and Envoy knows why" $((late + 1)) "$(stat cluster.app.ratelimit.failure_mode_allowed)"
stop "$gateway_pid"

# --- external authorization -------------------------------------------------------------------------------------------
run_envoy ext_authz.yml
from=(--interface 127.0.0.5)
limits_clients "ext_authz" "$front" 127.0.0.5 127.0.0.6
stops_long_urls "ext_authz" "$front" 127.0.0.5 7000 9000 33000 50000
is "ext_authz: what is skipped, is never denied" "200 200" "$(statuses 2 "$front" /health "${from[@]}")"
limits_posts "ext_authz" "$front" 127.0.0.5
is "ext_authz: no call failed" 0 "$(stat cluster.app.ext_authz.error)"
is "ext_authz, weir frozen: a request passes in time" 200 "$(while_frozen "$front" /a)"

# --- Weir unavailable -------------------------------------------------------------------------------------------------
stop "$pid"
is "ext_authz, Weir unavailable: as shipped, requests pass" "200 200" "$(statuses 2 "$front" /a "${from[@]}")"
stop "$gateway_pid"
run_envoy ratelimit.yml
is "Weir unavailable: as shipped, requests pass" "200 200" "$(statuses 2 "$front" /a)"
stop "$gateway_pid"
sed -i 's/failure_mode_deny: false/failure_mode_deny: true/' "$work/envoy/ratelimit.yml"
run_envoy ratelimit.yml
is "with failure_mode_deny, they do not" "500 500" "$(statuses 2 "$front" /a)"
finish
