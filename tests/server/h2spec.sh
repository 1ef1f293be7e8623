# Another's conformance test of HTTP/2 and HPACK against the gRPC port. It takes us for a web server, whose requests are
# GETs that are answered with DATA. What may fail for that reason is named here; nothing else may.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/fetch.bash"
provide h2spec

start_server

# A call that is none is answered at once and with HEADERS alone. So there is no DATA to see; the stream is closed before
# the frames come that should be wrong on it, as late ones often are, and those are ignored; and a thousand streams
# are never open together. Other protocols are told in words that they have come to the wrong port.
cat >"$work/may_fail" <<'CASES'
generic/2 Sends a PRIORITY frame on half-closed (remote) stream
generic/2 Sends a WINDOW_UPDATE frame on half-closed (remote) stream
http2/3.5 Sends invalid connection preface
http2/5.1 closed: Sends a DATA frame
http2/5.1 closed: Sends a HEADERS frame
http2/5.1 half closed (remote): Sends a DATA frame
http2/5.1 half closed (remote): Sends a HEADERS frame
http2/5.1.1 Sends stream identifier that is numerically smaller than previous
http2/5.1.2 Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded
http2/6.1 Sends a DATA frame
http2/6.9 Sends a WINDOW_UPDATE frame with a flow control window increment of 0 on a stream
http2/6.9.1 Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream
http2/8.1 Sends a second HEADERS frame without the END_STREAM flag
http2/8.1.2.1 Sends a HEADERS frame that contains a pseudo-header field as trailers
http2/8.1.2.6 Sends a HEADERS frame with the "content-length" header field which does not equal
CASES

# failing: what fails beside those, of at least 140 cases.
failing() {
  rm -f "$work/report.xml"
  timeout 100 "$h2spec" generic http2 hpack -p "$grpc_port" -o 1 -j "$work/report.xml" \
    -P /envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit >"$work/h2spec.log" 2>&1
  "$python" - "$work/report.xml" <<'PY' | grep -vFf "$work/may_fail" | sort
import os, sys, xml.etree.ElementTree as tree
cases = list(tree.parse(sys.argv[1]).iter("testcase")) if os.path.exists(sys.argv[1]) else []
if len(cases) < 140:
    print("only", len(cases), "cases ran")
for case in cases:
    if case.find("failure") is not None or case.find("error") is not None:
        print(case.get("package"), case.get("classname"))
PY
}

# In other cases, too, the answer may now and then be quicker than the frame that should be wrong, but not each time.
failing >"$work/always"
for _ in 1 2; do
  [ -s "$work/always" ] || break
  failing | comm -12 "$work/always" - >"$work/still" && mv "$work/still" "$work/always"
done
is "nothing else fails" "" "$(cat "$work/always")"
is "the server still answers" ok "$(curl -s -m 20 "$http/livez")"
[ "$failures" == 0 ] || grep -A6 '×' "$work/h2spec.log"
finish
