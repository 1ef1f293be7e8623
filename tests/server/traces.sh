# Traces: spans of checks, as a collector receives them, and collectors that hang, refuse or are missing.
#
# ctest runs it as `bash traces.sh PROGRAM SOURCE_DIR`.
source "$(dirname "$0")/lib.bash"

# collect NAME [HOW]: starts a collector that writes $work/NAME; sets collector, its URL.
collect() {
  "$python" "$source_dir/tests/server/collector.py" "$work/$1" "${2:-200}" >"$work/$1.port" &
  collector_pid=$!
  server_pids+=("$collector_pid")
  until_true 20 test -s "$work/$1.port" || is "a collector starts" yes no
  collector="http://127.0.0.1:$(cat "$work/$1.port")"
}
# spans FILE: how many it has.
spans() { wc -l <"$1"; }
has_spans() { [ "$(spans "$1")" -ge "$2" ]; }

has "TLS is not spoken, which is said" "over plain HTTP only" "$("$program" serve --traces https://127.0.0.1 2>&1)"
has "nonsense" "write http://127.0.0.1:4318" "$("$program" serve --traces nonsense 2>&1)"

echo 'rules: [{name: login, per: ip, limit: 1/year}]' >"$work/weir.yaml"
trace=4bf92f3577b34da6a3ce929d0e0e4736
ask='{"ip":"192.0.2.1","path":"/login"}'
collect good
start_server --config "$work/weir.yaml" --traces "$collector"
post "$ask" -H "traceparent: 00-$trace-00f067aa0ba902b7-01" -o /dev/null
post "$ask" -H "traceparent: 00-$trace-00f067aa0ba902b8-01" -o /dev/null
post "$ask" -H "traceparent: 00-$trace-00f067aa0ba902b9-00" -o /dev/null
post "$ask" -H "traceparent: nonsense" -o /dev/null
post "$ask" -o /dev/null
curl -s "$http/livez" -H "traceparent: 00-$trace-00f067aa0ba902ba-01" -o /dev/null
post '{"key":"k","limit":"1/year"}' -H "traceparent: 00-$trace-00f067aa0ba902bb-01" -o /dev/null
curl -s "$http/auth" -H "traceparent: 00-$trace-00f067aa0ba902bc-01" -H 'X-Forwarded-For: 192.0.2.9' -o /dev/null
until_true 10 has_spans "$work/good" 4
sleep 0.2
out=$(cat "$work/good")
is "the traces that are recorded, and no other" 4 "$(spans "$work/good")"
is "all as OTLP wants them" 0 "$(grep -c WRONG "$work/good")"
first=$(grep 902b7 "$work/good")
for part in '"name": "POST /v1/check"' '"http.request.method": "POST"' '"http.route": "/v1/check"' \
  '"http.response.status_code": 200' '"weir.outcome": "allowed"' '"weir.rule": "login"' "\"trace\": \"$trace\""; do
  has "a span tells $part" "$part" "$first"
done
has "a denial" '"weir.outcome": "denied"' "$(grep 902b8 "$work/good" | grep '"http.response.status_code": 429')"
has "a limit that the client brought along" '"weir.outcome": "allowed"' "$(grep 902bb "$work/good")"
has "a request of a gateway" '"name": "GET /auth"' "$(grep 902bc "$work/good")"
has "the metrics count them" "weir_traces_sent_total 4" "$(metrics)"
ends_well "the server ends"

# All of them, and what is queued at the end.
collect all
start_server --config "$work/weir.yaml" --traces "$collector/v1/traces" --traces-sample 1
for i in {1..20}; do echo "{\"ip\":\"192.0.2.$i\"}"; done | while read -r body; do post "$body" -o /dev/null; done
stop_server
is "the end sends what is queued" 20 "$(spans "$work/all")"
is "each a trace of its own" 20 "$(grep -o '"trace": "[0-9a-f]*"' "$work/all" | sort -u | wc -l)"

# gRPC, by another's client.
if "$python" -c 'import grpc' 2>/dev/null; then
  collect grpc
  start_server --config "$work/weir.yaml" --traces "$collector" --log-format json
  id=$("$python" - "$grpc_port" "$trace" <<'PY'
import grpc, sys
def field(number, data): return bytes([number << 3 | 2, len(data)]) + data
entry = field(1, b"remote_address") + field(2, b"192.0.2.1")
message = field(1, b"d") + field(2, field(1, entry))
channel = grpc.insecure_channel("127.0.0.1:" + sys.argv[1])
call = channel.unary_unary("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit")
for span in ("00f067aa0ba902b7", "00f067aa0ba902b8"):
    answer, state = call.with_call(message, timeout=60, metadata=(
        ("traceparent", "00-" + sys.argv[2] + "-" + span + "-01"), ("x-request-id", "grpc-" + span[-1])))
print(dict(state.initial_metadata()).get("x-request-id"))
PY
  )
  is "gRPC: the id of a request comes back" grpc-8 "$id"
  until_true 10 has_spans "$work/grpc" 2
  is "gRPC: all as OTLP wants them" 0 "$(grep -c WRONG "$work/grpc")"
  for part in '"name": "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"' '"rpc.grpc.status_code": 0' \
    '"rpc.method": "ShouldRateLimit"' '"weir.outcome": "denied"' '"weir.rule": "login"'; do
    has "gRPC: a span tells $part" "$part" "$(grep 902b8 "$work/grpc")"
  done
  has "gRPC: a denial has its request's id" '"request_id":"grpc-8"' "$(cat "$work"/err* | grep '"protocol":"grpc"')"
else
  skip gRPC "python3-grpcio is missing"
fi

# Collectors that are no help: checks go on, and the end comes soon.
refused="http://127.0.0.1:1"
for how in 500 503 hang refused; do
  if [ "$how" == refused ]; then
    collector=$refused
  else
    collect "bad$how" "$how"
  fi
  start_server --config "$work/weir.yaml" --traces "$collector" --traces-sample 1
  err="$work/err$((${#server_pids[@]} - 1))"
  out=$(timeout 600 "$program" bench --http "127.0.0.1:$http_port" --seconds 0.5 --json --connections 4)
  has "$how: checks go on" '"errors": 0, "unanswered": 0' "$out"
  if [ "$how" != hang ]; then
    until_true 10 grep -q "trace export failed" "$err" || is "$how: it is told" yes no
    is "$how: once" 1 "$(grep -c 'trace export failed' "$err")"
  fi
  ends_well "$how: the server ends well nevertheless"
done

# After a second signal, the server does not wait for a collector that does not answer. After one it waits for 2.5 s;
# a busy machine may let so much pass between the two, so there are three tries.
is_told_TERM() { [ "$(curl -s -m 60 -o /dev/null -w '%{http_code}' "$http/readyz")" == 503 ]; }
is_told_INT() { ! (exec 3<>"/dev/tcp/127.0.0.1/$http_port") 2>/dev/null; }
# ends_at_once SIGNAL: whether it does so.
ends_at_once() {
  collect "twice$1" hang
  start_server --config "$work/weir.yaml" --traces "$collector" --traces-sample 1
  timeout 600 "$program" bench --http "127.0.0.1:$http_port" --seconds 0.5 --connections 4 >/dev/null
  kill "-$1" "$pid"
  # After SIGINT nothing but spans is waited for; after SIGTERM, the server goes on for a while.
  until_true 10 "is_told_$1" || return 1
  local began=${EPOCHREALTIME/./}
  kill "-$1" "$pid" || return 1
  until_true 10 is_gone "$pid"
  [ $((${EPOCHREALTIME/./} - began)) -lt 900000 ]
}
for signal in TERM INT; do
  ended=no
  for _ in 1 2 3; do ends_at_once "$signal" && ended=yes && break; done
  is "twice $signal: it ends at once" yes "$ended"
done
finish
