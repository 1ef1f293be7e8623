# Three servers on one Redis, from the outside: one limit, whichever server receives the checks, over every protocol.
# Redis is killed and started again while they answer.
source "$(dirname "$0")/fleet.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 6/year, algorithm: fixed_window}
  - {name: two, match: {path: /two}, per: user, limits: [4/year, 9/10year], algorithm: fixed_window}
  - {name: all, match: {path: /all}, per: global, limit: 1000/year}
  - {name: shut, match: {path: /shut}, per: user, limit: 6/year, on_backend_error: closed}
YAML
start_redis
for _ in 1 2 3; do start_node --config "$work/weir.yaml" --store-deadline 1000; done
all_strict 0 1 2
know_each_other

echo "# one limit"
is "six of nine, whichever server receives them" 6 "$(count_allowed '{"user":"42","path":"/search"}' 0 1 2 0 1 2 0 1 2)"
has "and the answer says who decided" '"decided_by":' "$(ask 1 '{"user":"42","path":"/search"}')"
is "a check charges two limits or none" 4 "$(count_allowed '{"user":"42","path":"/two"}' 0 1 2 0 1 2)"
for n in 0 1 2 0; do reply=$(timeout 600 redis-cli -p "${resps[n]}" CL.THROTTLE k 2 3 100000 | paste -sd' '); done
has "RESP: the fourth of three" "1 3 0" "$reply"
has "HTTP with a limit of its own" '"remaining":1' "$(ask 0 '{"key":"own","limit":"3/year","cost":2}')"
has "and the next server knows of it" '"allowed":false' "$(ask 1 '{"key":"own","limit":"3/year","cost":2}')"

echo "# every answer says who decided"
auth() { curl -s -m 60 -D - -o /dev/null "${https[0]}/auth" -H 'X-Forwarded-Uri: /all' | tr -d '\r'; }
json() {
  curl -s -m 60 "${https[0]}/json" -d '{"domain":"d","descriptors":[{"entries":[{"key":"path","value":"/all"}]}]}'
}
resp() { timeout 600 redis-cli -p "${resps[0]}" "$@" | paste -sd' '; }
has "forward-auth, in its header" "X-Weir-Decided-By: strict" "$(auth)"
has "Envoy, in the metadata for other filters" '"decided_by":"strict"}' "$(json)"
has "WEIR.CHECK, at the end" "decided_by strict" "$(resp WEIR.CHECK path /all)"
has "WEIR.LIMIT, too" "decided_by strict" "$(resp -3 WEIR.LIMIT made 5/year)"
is "CL.THROTTLE has five numbers, as without a store" 5 "$(resp CL.THROTTLE five 2 3 1000 | wc -w)"

echo "# reservations, permits and keys of each other"
seven='"user":"7","path":"/search"'
id=$(curl -s -m 60 "${https[0]}/v1/reserve" -d "{$seven,\"cost\":5}" | sed 's/.*"reservation":"\([^"]*\)".*/\1/')
has "settled on another server" '"allowed":true' \
  "$(curl -s -m 60 "${https[1]}/v1/commit" -d "{$seven,\"cost\":2,\"id\":\"$id\"}")"
has "and seen on the third" '"remaining":3' "$(ask 2 '{"user":"7","path":"/search"}')"

echo "# Redis is gone"
ask 0 '{"user":"8","path":"/search","cost":3}' >/dev/null
kill_redis
began=$(now_us)
for n in 0 1 2; do eventually "server $n decides without Redis" is_local "$n"; done
took "all decide without Redis, seconds" "$(seconds_since "$began")" 5
passed=$(count_allowed '{"user":"8","path":"/search"}' 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2)
at_most "no more than was left or the shares of the limit" "$passed" 6
at_least "but not nothing" "$passed" 1
has "forward-auth says so" "X-Weir-Decided-By: local" "$(auth)"
has "and so does the answer to Envoy" '"decided_by":"local"}' "$(json)"
has "and the reply over RESP" "decided_by local" "$(resp WEIR.CHECK path /all)"
has "a rule that says so denies" '"decided_by":"closed"' "$(ask 0 '{"user":"8","path":"/shut"}')"
start_redis
began=$(now_us)
all_strict 0 1 2
took "all ask Redis again, seconds" "$(seconds_since "$began")" 1
spent_again() { [[ $(ask 1 '{"user":"8","path":"/search","cost":0}') != *'"remaining":6'* ]]; }
eventually "what was admitted meanwhile is written back" spent_again

echo "# the end"
for one in "${pids[@]}"; do kill -TERM "$one"; done
for one in "${pids[@]}"; do
  wait "$one"
  is "a server ends with exit code 0" 0 $?
done
finish
