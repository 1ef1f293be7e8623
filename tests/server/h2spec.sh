# Another's conformance test of HTTP/2 and HPACK against the gRPC port. What fails is named here, with the reason;
# anything else that fails, or no longer does, is an error.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/fetch.bash"
provide h2spec

start_server
timeout 200 "$h2spec" generic http2 hpack -p "$grpc_port" -o 2 -j "$work/report.xml" \
  -P /envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit >"$work/h2spec.log" 2>&1

said=$("$python" - "$work/report.xml" <<'PY'
import sys, xml.etree.ElementTree as tree
cases = list(tree.parse(sys.argv[1]).iter("testcase"))
print(len(cases))
for case in cases:
    if case.find("failure") is not None or case.find("error") is not None:
        print(case.get("package"), case.get("classname"))
PY
)
is "all cases ran" yes "$([ "$(head -1 <<<"$said")" -ge 140 ] && echo yes || tail -5 "$work/h2spec.log")"

expected=''
is "no case fails but those that a gRPC server fails by nature" "$expected" "$(tail -n +2 <<<"$said")"
is "the server still answers" ok "$(curl -s -m 20 "$http/livez")"
[ "$failures" == 0 ] || grep -A6 '×' "$work/h2spec.log"
finish
