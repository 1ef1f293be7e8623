# Three servers on one Redis, from the outside: one limit whichever is asked, by every door; Redis killed, paused and
# brought back while they answer.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/own_redis.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 6/year, algorithm: fixed_window}
  - {name: two, match: {path: /two}, per: user, limits: [4/year, 9/10year], algorithm: fixed_window}
  - {name: all, match: {path: /all}, per: global, limit: 1000/year}
  - {name: shut, match: {path: /shut}, per: user, limit: 6/year, on_backend_error: closed}
YAML
start_redis
https=() resps=() grpcs=() pids=()
for _ in 1 2 3; do
  start_server --config "$work/weir.yaml" --store "redis://127.0.0.1:$redis_port" --store-deadline 1000 --drain-delay 0
  https+=("$http") resps+=("$resp_port") grpcs+=("$grpc_port") pids+=("$pid")
done
# ask SERVER BODY: the answer's body.
ask() { curl -s -m 60 "${https[$1]}/v1/check" -d "$2"; }
is_strict() { [[ $(ask "$1" '{"user":"warm","path":"/search","cost":0}') == *'"decided_by":"strict"'* ]]; }
for n in 0 1 2; do until_true 20 is_strict "$n" || is "server $n asks Redis" yes no; done
sleep 2.2  # until each has heard of the others: they say each second that they live

echo "# one limit"
passed=0
for n in 0 1 2 0 1 2 0 1 2; do
  [[ $(ask $n '{"user":"42","path":"/search"}') == '{"allowed":true'* ]] && passed=$((passed + 1))
done
is "six of nine, whoever is asked" 6 "$passed"
has "and it is told how" '"decided_by":' "$(ask 1 '{"user":"42","path":"/search"}')"
passed=0
for n in 0 1 2 0 1 2; do
  [[ $(ask $n '{"user":"42","path":"/two"}') == '{"allowed":true'* ]] && passed=$((passed + 1))
done
is "two limits are one event" 4 "$passed"
for n in 0 1 2 0; do reply=$(timeout 600 redis-cli -p "${resps[n]}" CL.THROTTLE k 2 3 100000 | paste -sd' '); done
has "RESP: the fourth of three" "1 3 0" "$reply"
has "HTTP with a limit of its own" '"remaining":1' "$(ask 0 '{"key":"own","limit":"3/year","cost":2}')"
has "seen by the next server" '"allowed":false' "$(ask 1 '{"key":"own","limit":"3/year","cost":2}')"

echo "# every door says how it was made"
auth() { curl -s -m 60 -D - -o /dev/null "${https[0]}/auth" -H 'X-Forwarded-Uri: /all' | tr -d '\r'; }
json() {
  curl -s -m 60 "${https[0]}/json" -d '{"domain":"d","descriptors":[{"entries":[{"key":"path","value":"/all"}]}]}'
}
resp() { timeout 600 redis-cli -p "${resps[0]}" "$@" | paste -sd' '; }
has "forward-auth, in its header" "X-Weir-Decided-By: strict" "$(auth)"
has "Envoy, in what other filters see" '"decided_by":"strict"}' "$(json)"
has "WEIR.CHECK, at the end" "decided_by strict" "$(resp WEIR.CHECK path /all)"
has "WEIR.LIMIT, too" "decided_by strict" "$(resp -3 WEIR.LIMIT made 5/year)"
is "CL.THROTTLE has five numbers, as ever" 5 "$(resp CL.THROTTLE five 2 3 1000 | wc -w)"

echo "# reservations, permits and keys of each other"
seven='"user":"7","path":"/search"'
id=$(curl -s -m 60 "${https[0]}/v1/reserve" -d "{$seven,\"cost\":5}" | sed 's/.*"reservation":"\([^"]*\)".*/\1/')
has "settled on another server" '"allowed":true' \
  "$(curl -s -m 60 "${https[1]}/v1/commit" -d "{$seven,\"cost\":2,\"id\":\"$id\"}")"
has "and seen on the third" '"remaining":3' "$(ask 2 '{"user":"7","path":"/search"}')"

echo "# Redis is gone"
ask 0 '{"user":"8","path":"/search","cost":3}' >/dev/null
kill -KILL "$redis_pid"
wait "$redis_pid" 2>/dev/null
began=$(now_us)
local_answer() { [[ $(ask "$1" '{"user":"9","path":"/search"}') == *'"decided_by":"local"'* ]]; }
for n in 0 1 2; do until_true 10 local_answer "$n" || is "server $n goes on by itself" yes no; done
took "all go on by themselves, seconds" "$(seconds_since "$began")" 5
passed=0
for _ in 1 2 3 4 5 6; do
  for n in 0 1 2; do
    [[ $(ask $n '{"user":"8","path":"/search"}') == '{"allowed":true'* ]] && passed=$((passed + 1))
  done
done
at_most "no more than was left or the shares of the limit" "$passed" 6
at_least "but not nothing" "$passed" 1
has "forward-auth says so" "X-Weir-Decided-By: local" "$(auth)"
has "and Envoy is told" '"decided_by":"local"}' "$(json)"
has "and who asks by RESP" "decided_by local" "$(resp WEIR.CHECK path /all)"
has "a rule that says so denies" '"decided_by":"closed"' "$(ask 0 '{"user":"8","path":"/shut"}')"
start_redis
began=$(now_us)
for n in 0 1 2; do until_true 10 is_strict "$n" || is "server $n asks Redis again" yes no; done
took "all ask Redis again, seconds" "$(seconds_since "$began")" 1
spent_again() { [[ $(ask 1 '{"user":"8","path":"/search","cost":0}') != *'"remaining":6'* ]]; }
until_true 10 spent_again
is "what was let through meanwhile is paid back" 0 $?

echo "# the end"
for one in "${pids[@]}"; do kill -TERM "$one"; done
for one in "${pids[@]}"; do
  wait "$one"
  is "a server ends in peace" 0 $?
done
finish
