# The metrics page from outside: both formats, correct numbers, and a million keys that change nothing but numbers.
# promtool.sh runs Prometheus' own checker on it.
source "$(dirname "$0")/lib.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: login, match: {path: /login}, per: ip, limit: 3/year}
  - {name: nobody, match: {path: /never}, per: user, limit: 0/year}
YAML
start_server --config "$work/weir.yaml" --keys 100000 --threads 2
series() { metrics | grep -vc '^#'; }

has "text for a client that names no format" "Content-Type: text/plain; version=0.0.4; charset=utf-8" \
  "$(metrics -i | tr -d '\r')"
prometheus='application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
has "OpenMetrics for Prometheus" "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8" \
  "$(metrics -i -H "Accept: $prometheus" | tr -d '\r')"
is "which has an end" "# EOF" "$(metrics -H "Accept: $prometheus" | tail -n 1)"
is "metrics are on the admin port only" 404 "$(code_of "$http/metrics")"

for _ in 1 2 3 4 5; do post '{"ip":"192.0.2.1","path":"/login"}' >/dev/null; done
post '{"key":"job:7","limit":"10/year"}' >/dev/null
is "allowed by a rule" 3 "$(metric 'weir_decisions_total{rule="login",outcome="allowed"}')"
is "denied by it" 2 "$(metric 'weir_decisions_total{rule="login",outcome="denied"}')"
redis CL.THROTTLE job:8 0 1 3600 >/dev/null
redis CL.THROTTLE job:8 0 1 3600 >/dev/null
is "limits of clients, over HTTP and RESP" 2 "$(metric 'weir_decisions_total{rule="inline",outcome="allowed"}')"
inline_denied='weir_decisions_total{rule="inline",outcome="denied"}'
is "and denied" 1 "$(metric "$inline_denied")"
has "requests have a time" 'weir_request_duration_seconds_bucket{protocol="http",le="+Inf"} 7' "$(metrics)"
is "requests are counted, also the one for /metrics on this port" 7 "$(metric 'weir_requests_total{protocol="http"}')"

# Every metric that the alerts and the dashboard name is on the page.
page=$(metrics)
for file in prometheus/alerts.yml grafana/weir.json; do
  names=$(grep -ohE '\b(weir|process)_[a-z0-9_]+' "$2/examples/$file" | sed 's/_bucket$//' | sort -u)
  unknown=$(for name in $names; do grep -q "^# TYPE $name " <<<"$page" || echo "$name"; done)
  is "examples/$file names metrics that are there" "" "$unknown"
  for name in weir_store_up weir_store_unsynced_keys weir_store_dropped_permits_total weir_store_configs; do
    has "and the fleet's, $name" "$name" "$names"
  done
done

before=$(series)
rss_before=$(rss_kib "$pid")
"$program" bench --resp "127.0.0.1:$resp_port" --keys 1000000 --each-key --command 'CL.THROTTLE {key} 0 1 3600 2' \
  >"$work/flood" 2>&1 || cat "$work/flood"
"$program" bench --http "127.0.0.1:$http_port" --keys 1000000 --seconds 2 --batch 500 \
  --body '{"user":"{key}","path":"/never"}' >"$work/flood" 2>&1 || cat "$work/flood"
is "every denial of a limit of clients is counted" 1000001 "$(metric "$inline_denied")"
is "and those of a rule" 1 "$(($(metric 'weir_decisions_total{rule="nobody",outcome="denied"}') > 1000))"
is "a million keys bring no series" "$before" "$(series)"
size=$(metrics | wc -c)
is "the page stays small" 1 "$((size <= 262144))"
is "and so does the sketch of top keys" 1 "$(($(metric weir_top_keys_bytes) <= 4000000))"
grown=$(($(rss_kib "$pid") - rss_before))
is "and so does the server, which grew by $grown KiB" 1 "$((grown < 40000))"
still_answers "after the flood"
finish
