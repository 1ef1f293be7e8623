# Helpers for the tests with gRPC's own Python client: the rules that grpc_clients.py expects, and a function that runs
# it. The log keeps every hit for its minute, so no window starts during the calls.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: per-user, match: {entry: {domain: web}}, per: 'entry:user', limit: 3/year, algorithm: sliding_log}
  - {name: gold, match: {entry: {domain: web, plan: gold}}, per: global, limit: 100/year}
  - {name: crowd, match: {entry: {domain: web}}, per: 'entry:crowd', limit: 400/year}
YAML

# talk MODE: each of its lines counts as one of ours.
talk() {
  start_server --config "$work/weir.yaml"
  "$python" "$(dirname "${BASH_SOURCE[0]}")/grpc_clients.py" "$grpc_port" "$pid" "$1" \
    >"$work/talk" 2>"$work/err_talk"
  is "the talk ended well" 0 $?
  cat "$work/talk"
  failures=$((failures + $(grep -c '^FAIL' "$work/talk")))
}
