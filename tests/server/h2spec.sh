# An independent conformance test of HTTP/2 and HPACK against the gRPC port: every case passes. It expects a web server.
# The server refuses its requests with a text, as any plain HTTP request, so the frames are the expected ones.
source "$(dirname "$0")/lib.bash"
provide h2spec

start_server

timeout 600 "$h2spec" generic http2 hpack -p "$grpc_port" -o 5 -j "$work/report.xml" \
  -P /envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit >"$work/h2spec.log" 2>&1

# What failed, of at least 140 cases.
failing=$("$python" - "$work/report.xml" <<'PY'
import os, sys, xml.etree.ElementTree as tree
cases = list(tree.parse(sys.argv[1]).iter("testcase")) if os.path.exists(sys.argv[1]) else []
if len(cases) < 140:
    print("only", len(cases), "cases ran")
for case in cases:
    if any(case.find(what) is not None for what in ("failure", "error", "skipped")):
        print(case.get("package"), case.get("classname"))
PY
)
is "every case passes" "" "$failing"
is "the server still answers" ok "$(curl -s -m 60 "$http/livez")"
[ "$failures" == 0 ] || grep -A6 '×' "$work/h2spec.log"
finish
