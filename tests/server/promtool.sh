# Prometheus' own checker reads the metrics page and the alerts of examples/prometheus.
# metrics.sh compares the numbers.
source "$(dirname "$0")/lib.bash"
provide promtool
examples=$(realpath "$2")/examples tests=$(realpath "$2")/tests/server

start_server --config "$examples/weir.yaml"
for _ in 1 2; do redis CL.THROTTLE job:8 0 1 3600 >/dev/null; done
post '{"user":"1","path":"/login"}' >/dev/null
page=$(metrics)
has "there is something to check" 'weir_decisions_total{rule="inline",outcome="denied"} 1' "$page"
is "promtool finds nothing wrong" "" "$("$promtool" check metrics 2>&1 <<<"$page")"
has "the alerts are sound" "SUCCESS" "$("$promtool" check rules "$examples/prometheus/alerts.yml" 2>&1)"
has "and go off when they should" "SUCCESS" "$("$promtool" test rules "$tests/alerts.yml" 2>&1)"
finish
