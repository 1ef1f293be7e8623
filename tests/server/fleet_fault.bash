# What the tests of a fleet's faults share: a Redis that is killed, paused and cut off, servers on it, and a watcher
# that queries one server all the time and reports who decided and how long the answers took.
source "$(dirname "${BASH_SOURCE[0]}")/fleet.bash"
cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 12/year, algorithm: fixed_window}
  - {name: open, match: {path: /open}, per: user, limit: 12/year, algorithm: fixed_window, on_backend_error: open}
  - {name: shut, match: {path: /shut}, per: user, limit: 12/year, algorithm: fixed_window, on_backend_error: closed}
YAML
redis_bind=(127.0.0.1 127.0.0.2 127.0.0.3)

# start_fleet COUNT [OPTIONS]: each server reaches Redis by an address of its own.
start_fleet() {
  local n
  for ((n = 1; n <= $1; ++n)); do
    start_node_with --config "$work/weir.yaml" --store "redis://127.0.0.$n:$redis_port" "${@:2}"
  done
  all_strict "${!https[@]}"
  know_each_other
}

# made SERVER PATH [COST]: how an answer was made.
made() {
  ask "$1" "{\"user\":\"warm\",\"path\":\"$2\",\"cost\":${3:-0}}" | sed -n 's/.*"decided_by":"\([a-z]*\)".*/\1/p'
}
# spend TIMES USER PATH SERVER...: sends TIMES checks to each server, and prints how many are allowed.
spend() {
  local i servers=()
  for ((i = 0; i < $1; ++i)); do servers+=("${@:4}"); done
  count_allowed "{\"user\":\"$2\",\"path\":\"$3\"}" "${servers[@]}"
}

# watch SERVER SECONDS FILE: queries it all the time, on one connection, about new keys. FILE then has the numbers of
# answers and of errors, the 99th percentile and the longest time in milliseconds, and how often `decided_by` changed.
# For each change it has the time, in seconds since 1970, and the new value. Ends early when there is a file FILE.end.
watch() { timeout 600 python3 "$(dirname "$0")/fleet_watch.py" "${https[$1]}" "$2" "$3.end" >"$3" 2>&1; }
seen() { sed -n "s/^$1=//p" "$2"; }
# first_change FILE TO: when answers were first made so.
first_change() { awk -v to="$2" '$1 == "change" && $3 == to {print $2; exit}' "$1"; }
