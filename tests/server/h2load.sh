# An independent load generator, for a moment: many streams on few connections over gRPC, pipelined requests over HTTP.
# No request fails, and all are counted.
source "$(dirname "$0")/lib.bash"
command -v h2load >/dev/null || missing h2load "is not here (needs nghttp2-client)"

cat >"$work/weir.yaml" <<'YAML'
trusted_proxies: [127.0.0.1]
rules:
  - {name: address, per: ip, limit: 15000/day, algorithm: token_bucket}
YAML
start_server --config "$work/weir.yaml"

# summary NAME: what h2load said of its requests and their statuses.
summary() { sed -n 's/^requests: .* done, //p; s/^status codes: //p' "$work/$1" | paste -sd';'; }

# A gRPC message: domain `web`, one descriptor, remote_address=192.0.2.1.
printf '\0\0\0\0\x24\x0a\x03web\x12\x1d\x0a\x1b\x0a\x0eremote_address\x12\x09192.0.2.1' >"$work/message"
is "the message is as long as it says" 41 "$(stat -c %s "$work/message")"
timeout 600 h2load -n 20000 -c 8 -m 32 -t 1 -d "$work/message" -H 'content-type: application/grpc' -H 'te: trailers' \
  "http://127.0.0.1:$grpc_port/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit" >"$work/grpc" 2>&1
is "gRPC: all 20,000 are answered" "20000 succeeded, 0 failed, 0 errored, 0 timeout;20000 2xx, 0 3xx, 0 4xx, 0 5xx" \
  "$(summary grpc)"

timeout 600 h2load --h1 -n 20000 -c 8 -m 16 -t 1 -H 'X-Forwarded-For: 192.0.2.2' "$http/auth" >"$work/http" 2>&1
has "HTTP: none is in error, and none is counted twice" "0 errored, 0 timeout;15000 2xx, 0 3xx, 5000 4xx, 0 5xx" \
  "$(summary http)"
is "both listeners count the same address" "denied denied" "$(
  for address in 192.0.2.1 192.0.2.2; do
    post "{\"ip\":\"$address\"}" | grep -q '"allowed":false' && echo denied || echo "$address passes"
  done | paste -sd' ')"
is "and another one passes" 200 \
  "$(code_of "$http/auth" -H 'X-Forwarded-For: 192.0.2.3')"
finish
