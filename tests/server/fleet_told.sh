# What a fleet tells those who look after it while Redis is stopped, or refuses a part of what servers need of it: where
# a change holds, who was known when, why a client is denied, and which rights are missing.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/own_redis.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: login, match: {path: /login}, per: ip, limit: 2/year, algorithm: fixed_window}
  - {name: pay, match: {path: /api/pay}, per: user, limit: 20/year, algorithm: fixed_window, on_backend_error: closed}
  - {name: free, match: {path: /free}, per: user, limit: 30/year, algorithm: fixed_window, on_backend_error: open}
YAML
start_redis
# The user that docs/fleet.md makes, without what the arguments take away.
make_user() {
  local words
  read -ra words <<<"$(grep -m1 '^ACL SETUSER weir on' "$(dirname "$0")/../../docs/fleet.md")"
  is "the user without '$*'" OK "$(timeout 600 redis-cli -p "$redis_port" "${words[@]}" "$@")"
}
make_user
https=() admins=() errs=()
for _ in 0 1; do
  errs+=("$work/err${#server_pids[@]}")
  start_server --config "$work/weir.yaml" --store "redis://weir:SECRET@127.0.0.1:$redis_port" --store-deadline 1000 \
    --drain-delay 0
  https+=("$http") admins+=("127.0.0.1:$admin_port")
done
# weir_on SERVER ARGUMENTS: sets said and code.
weir_on() {
  local n=$1
  shift
  said=$("$program" "$@" --admin "${admins[n]}" 2>&1)
  code=$?
}
# tells SERVER TEXT ARGUMENTS: a command says this; silent: it does not.
tells() {
  local n=$1 text=$2
  shift 2
  weir_on "$n" "$@"
  [[ $said == *"$text"* ]]
}
silent() { ! tells "$@"; }
ask() { curl -s -m 60 "${https[$1]}/v1/check" -d "$2"; }
is_made() { [[ $(ask "$1" '{"ip":"192.0.2.1","path":"/login","cost":0}') == *"\"decided_by\":\"$2\""* ]]; }
all_made() { is_made 0 "$1" && is_made 1 "$1"; }
is_denied() { [[ $(ask "$1" "{\"user\":\"$2\",\"path\":\"/free\"}") == *'"allowed":false'* ]]; }
until_true 20 all_made strict
is "Redis is asked" 0 $?
for n in 0 1; do until_true 20 tells $n "2 nodes on" nodes; done
is "both know both, and all is well" 0 "$code"
weir_on 0 keys ban --user early --for 1h
is "a ban that all have says nothing of others" 1 "$(wc -l <<<"$said")"
weir_on 0 keys ban --user early2 --for 1h --json
has "but for programs" '"on_all_servers":true' "$said"
ask 0 '{"ip":"192.0.2.80","path":"/login","cost":2}' >/dev/null

echo "# Redis is stopped"
kill -STOP "$redis_pid"
until_true 20 all_made local
is "it cannot be asked" 0 $?
weir_on 0 keys reset login --ip 192.0.2.80
is "a reset is refused" 1 "$code"
has "and says why" "Redis is unavailable, so the key is not reset" "$said"
weir_on 0 rules changes
is "so it is not in the list" 0 "$(grep -c 'reset' <<<"$said")"
weir_on 0 keys ban --user mm2 --for 1h
is "a ban can be made" 0 "$code"
has "and says where it holds" "on this server only, until Redis is available again" "$said"
weir_on 0 rules mode login shadow --for 1h
has "so does a mode" "on this server only, until Redis is available again" "$said"
weir_on 0 rules undo --json
has "and what undoes it, for programs" '"on_all_servers":false' "$said"

weir_on 0 keys explain --user z1 --path /api/pay
has "why a client is denied" "denied by pay: 20/year: Redis is unavailable, and the rule's on_backend_error is closed" \
  "$said"
has "of the limit" "denied while Redis is unavailable (closed)" "$said"
weir_on 0 keys explain --user z1 --path /free
has "what holds of a rule that is open" "30 of 30 left on this server, while Redis is unavailable (open)" "$said"
has "that it is so by the outage" "passes; the tightest limit is free: 30/year; Redis is unavailable" "$said"
weir_on 0 keys explain --ip 192.0.2.9 --path /login
has "what holds of one that is local" "1 of 2 left of this server's share, while Redis is unavailable (local)" "$said"
denied=$(ask 0 '{"user":"z1","path":"/api/pay"}')
has "the client is told the same" \
  '"detail":"pay: 20/year: The limit cannot be checked now; requests are denied until it can be."' "$denied"
has "under its title" '"title":"Limit cannot be checked"' "$denied"
has "of the type as ever" '#quota-exceeded"' "$denied"
has "with the members as ever" '"allowed":false,"limit":20,"remaining":0' "$denied"
until_true 20 grep -q "denied.*rule=pay.*decided_by=closed" "${errs[0]}"
is "and the log has how it was made" 0 $?

other_age() {
  weir_on 0 nodes --json
  python3 -c '
import json, sys
print(*[int(node["age_seconds"]) for node in json.load(sys.stdin)["nodes"] if not node["self"]])' <<<"$said"
}
is_old() { [ "$(other_age)" -ge 5 ]; }
until_true 20 is_old
is "the age of the other grows" 0 $?
weir_on 0 nodes
is "weir nodes fails" 1 "$code"
has "says that Redis is unavailable" "UNAVAILABLE for" "$said"
has "and of when the list is" "old: Redis has not answered since" "$said"
weir_on 0 doctor
is "the doctor does not call that well" 0 "$(grep -c 'ok .*all with the same config' <<<"$said")"
kill -CONT "$redis_pid"
until_true 20 all_made strict
is "it is asked again" 0 $?
until_true 20 is_denied 1 mm2
is "the ban holds on the other server" 0 $?
has "the key is still spent" '"allowed":false' "$(ask 1 '{"ip":"192.0.2.80","path":"/login"}')"
weir_on 0 keys reset login --ip 192.0.2.80
is "now it is reset" "0 login: reset" "$code $said"
has "for all" '"allowed":true' "$(ask 1 '{"ip":"192.0.2.80","path":"/login"}')"
until_true 20 tells 1 "reset login: ip:192.0.2.80" rules changes
is "and listed on the other" 0 $?

echo "# Redis refuses to delete"
make_user -del
ask 0 '{"ip":"192.0.2.81","path":"/login","cost":2}' >/dev/null
weir_on 0 keys reset login --ip 192.0.2.81
is "a reset is refused" 1 "$code"
weir_on 0 rules changes
has "the list says that it was not done" "not done: " "$said"
is "and does not hold" 1 "$(grep -c 'reset login: ip:192.0.2.81  *no, undone by' <<<"$said")"
make_user

echo "# Redis refuses the list of changes"
until_true 20 silent 0 "changes do not reach" doctor
make_user -zadd
weir_on 0 keys ban --user zz1 --for 1h
has "a ban says where it holds" \
  "on this server only, until the other servers receive it: Redis refuses to write" "$said"
has "and why" "Redis refuses to write the shared runtime changes: " "$said"
is_denied 0 zz1
is "there it does" 0 $?
until_true 20 tells 0 \
  "FAIL  runtime changes do not reach all servers: Redis refuses to write the shared runtime changes" doctor
is "the doctor names it" 0 $?
has "and the rights" "+zrevrange +zrangebyscore +zadd +zremrangebyscore ~weir:*" "$said"
is "and is not content" 1 "$code"
is "nor does it speak of a rollout" 0 "$(grep -c rollout <<<"$said")"
until_true 20 tells 1 "has runtime changes that other servers lack: 1" doctor
is "the other server's doctor knows of it" 0 $?
is "and does not speak of a rollout" 0 "$(grep -c rollout <<<"$said")"
weir_on 0 nodes
is "weir nodes fails" 1 "$code"
has "and says why" "Redis refuses to write the shared runtime changes" "$said"
until_true 20 grep -q "Redis refuses to write the shared runtime changes.*+zadd" "${errs[0]}"
is "the log names the rights" 0 $?
make_user
until_true 20 is_denied 1 zz1
is "with them it holds on the other" 0 $?
until_true 20 silent 0 "changes do not reach" doctor
is "and the doctor is content" 0 $?
make_user -zrevrange
until_true 20 tells 1 \
  "runtime changes do not reach all servers: Redis refuses to read the shared runtime changes" doctor
is "a list that cannot be read" 0 $?
make_user
until_true 20 silent 1 "changes do not reach" doctor

echo "# Redis refuses the heartbeat"
make_user -hset
until_true 20 tells 0 "Redis refuses this server's heartbeat" doctor
is "the doctor names it" 0 $?
has "and the rights" "+time +hset +hdel +hgetall +pexpire ~weir:*" "$said"
is "and is not content" 1 "$code"
weir_on 0 nodes
is "weir nodes fails" 1 "$code"
has "and says why" "Redis refuses this server's heartbeat" "$said"
until_true 20 is_old
has "the log says it" "Redis refuses this server's heartbeat" "$(cat "${errs[0]}")"
is "once" 1 "$(grep -c "refuses this server's heartbeat" "${errs[0]}")"
make_user
until_true 20 grep -q "Redis accepts this server's heartbeat again" "${errs[0]}"
is "and when it is mended" 0 $?
until_true 20 silent 0 "heartbeat" doctor
is "so does the doctor" 0 $?
finish
