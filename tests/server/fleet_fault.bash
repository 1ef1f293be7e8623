# What the tests of a fleet's faults share: a Redis that is killed, paused and cut off, servers on it, and a watcher
# that asks one server all the time and tells how answers were made and how long they took. Sourced after lib.bash.
source "$(dirname "$0")/own_redis.bash"
cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 12/year, algorithm: fixed_window}
  - {name: open, match: {path: /open}, per: user, limit: 12/year, algorithm: fixed_window, on_backend_error: open}
  - {name: shut, match: {path: /shut}, per: user, limit: 12/year, algorithm: fixed_window, on_backend_error: closed}
YAML
redis_bind=(127.0.0.1 127.0.0.2 127.0.0.3)

https=() resps=() pids=()
# start_fleet COUNT [OPTIONS]: each server reaches Redis by an address of its own.
start_fleet() {
  local count=$1 n
  shift
  for ((n = 0; n < count; ++n)); do
    start_server --config "$work/weir.yaml" --store "redis://127.0.0.$((n + 1)):$redis_port" --drain-delay 0 "$@"
    https+=("$http") resps+=("$resp_port") pids+=("$pid")
  done
  for ((n = 0; n < count; ++n)); do until_true 20 is_strict "$n" || is "server $n asks Redis" yes no; done
  until_true 20 all_know "$count" || is "the servers know each other" yes no
}
all_know() { [ "$(timeout 60 redis-cli -p "$redis_port" hlen 'weir:2!{0000}nodes')" == "$1" ] && sleep 1.2; }

# ask SERVER BODY: the answer's body.
ask() { curl -s -m 60 "${https[$1]}/v1/check" -d "$2"; }
# made SERVER PATH [COST]: how an answer was made.
made() {
  ask "$1" "{\"user\":\"warm\",\"path\":\"$2\",\"cost\":${3:-0}}" | sed -n 's/.*"decided_by":"\([a-z]*\)".*/\1/p'
}
is_strict() { [ "$(made "$1" /search)" == strict ]; }
is_local() { [ "$(made "$1" /search)" == local ]; }
# spend TIMES USER PATH SERVER...: how many are allowed, of so many on each.
spend() {
  local times=$1 user=$2 path=$3 n i passed=0
  shift 3
  for ((i = 0; i < times; ++i)); do
    for n in "$@"; do
      [[ $(ask "$n" "{\"user\":\"$user\",\"path\":\"$path\"}") == '{"allowed":true'* ]] && passed=$((passed + 1))
    done
  done
  echo "$passed"
}

# watch SERVER SECONDS FILE: asks all the time, on one connection, by new keys; then FILE has the number of answers, of
# those that failed, the 99th hundredth and the longest in milliseconds, and how often the way they were made changed;
# and for each change when it came, in seconds since 1970, and to what. Ends early when there is a file FILE.end.
watch() { timeout 600 python3 "$(dirname "$0")/fleet_watch.py" "${https[$1]}" "$2" "$3.end" >"$3" 2>&1; }
seen() { sed -n "s/^$1=//p" "$2"; }
# first_change FILE TO: when answers were first made so.
first_change() { awk -v to="$2" '$1 == "change" && $3 == to {print $2; exit}' "$1"; }
