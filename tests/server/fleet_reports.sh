# What a fleet reports to its operators while Redis is stopped, or refuses some of the commands that servers need: where
# a change is in effect, which servers were known when, why a client is denied, and which permissions are missing.
source "$(dirname "$0")/fleet.bash"

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
for _ in 0 1; do
  start_node_with --config "$work/weir.yaml" --store "redis://weir:SECRET@127.0.0.1:$redis_port" --store-deadline 1000
done
silent() { ! tells "$@"; }
both_are() { is_decided 0 "$1" && is_decided 1 "$1"; }
is_denied() { [[ $(ask "$1" "{\"user\":\"$2\",\"path\":\"/free\"}") == *'"allowed":false'* ]]; }
eventually "Redis decides" both_are strict
for n in 0 1; do until_true 20 tells $n "2 servers on" nodes; done
is "both know both, and all is well" 0 "$code"
weir_on 0 keys ban --user early --for 1h
is "a ban on all servers has no note about the others" 1 "$(wc -l <<<"$said")"
prints "but for programs" '"on_all_servers":true' weir_on 0 keys ban --user early2 --for 1h --json
ask 0 '{"ip":"192.0.2.80","path":"/login","cost":2}' >/dev/null

echo "# Redis is stopped"
kill -STOP "$redis_pid"
eventually "the servers decide without it" both_are local
exits "a reset is refused" 1 weir_on 0 keys reset login --ip 192.0.2.80
has "and says why" "Redis is unavailable, so the key is not reset" "$said"
weir_on 0 rules changes
is "so it is not in the list" 0 "$(grep -c 'reset' <<<"$said")"
exits "a ban can be made" 0 weir_on 0 keys ban --user mm2 --for 1h
has "and says where it is in effect" "on this server only, until Redis is available again" "$said"
prints "so does a mode" "on this server only, until Redis is available again" weir_on 0 rules mode login shadow --for 1h
prints "and what undoes it, for programs" '"on_all_servers":false' weir_on 0 rules undo --json

prints "why a client is denied" \
  "denied by pay: 20/year: Redis is unavailable, and the rule's on_backend_error is closed" \
  weir_on 0 keys explain --user z1 --path /api/pay
has "of the limit" "denied while Redis is unavailable (closed)" "$said"
prints "what applies under a rule that is open" "30 of 30 left on this server, while Redis is unavailable (open)" \
  weir_on 0 keys explain --user z1 --path /free
has "and that the outage is the reason" "passes; the tightest limit is free: 30/year; Redis is unavailable" "$said"
prints "what applies under one that is local" \
  "1 left in this server's share (limit 2), while Redis is unavailable (local)" \
  weir_on 0 keys explain --ip 192.0.2.9 --path /login
denied=$(ask 0 '{"user":"z1","path":"/api/pay"}')
has "the client receives the same reason" \
  '"detail":"pay: 20/year: The limit cannot be checked now; requests are denied until it can be."' "$denied"
has "under its title" '"title":"Limit cannot be checked"' "$denied"
has "with the same type as other denials" '#quota-exceeded"' "$denied"
has "with the same members" '"allowed":false,"limit":20,"remaining":0' "$denied"
eventually "and the log has how it was made" grep -q "denied.*rule=pay.*decided_by=closed" "${errs[0]}"

other_age() {
  weir_on 0 nodes --json
  python3 -c '
import json, sys
print(*[int(node["age_seconds"]) for node in json.load(sys.stdin)["nodes"] if not node["self"]])' <<<"$said"
}
is_old() { [ "$(other_age)" -ge 5 ]; }
eventually "the age of the other grows" is_old
exits "weir nodes fails" 1 weir_on 0 nodes
has "says that Redis is unavailable" "UNAVAILABLE for" "$said"
has "and how old the list is" "old: Redis has not answered since" "$said"
weir_on 0 doctor
is "the doctor reports no agreement of configs" 0 "$(grep -c 'ok .*all with the same config' <<<"$said")"
kill -CONT "$redis_pid"
eventually "Redis decides again" both_are strict
eventually "the ban is in effect on the other server" is_denied 1 mm2
has "the key is still spent" '"allowed":false' "$(ask 1 '{"ip":"192.0.2.80","path":"/login"}')"
weir_on 0 keys reset login --ip 192.0.2.80
is "now it is reset" "0 login: reset" "$code $said"
has "for all" '"allowed":true' "$(ask 1 '{"ip":"192.0.2.80","path":"/login"}')"
eventually "and listed on the other" tells 1 "reset login: ip:192.0.2.80" rules changes

echo "# Redis refuses to delete"
make_user -del
ask 0 '{"ip":"192.0.2.81","path":"/login","cost":2}' >/dev/null
exits "a reset is refused" 1 weir_on 0 keys reset login --ip 192.0.2.81
prints "the list says that it was not done" "not done: " weir_on 0 rules changes
is "and is not in effect" 1 "$(grep -c 'reset login: ip:192.0.2.81  *no, undone by' <<<"$said")"
make_user

echo "# Redis refuses the list of changes"
until_true 20 silent 0 "changes do not reach" doctor
make_user -zadd
prints "a ban says where it is in effect" \
  "on this server only, until the other servers receive it: Redis refuses to write" \
  weir_on 0 keys ban --user zz1 --for 1h
has "and why" "Redis refuses to write the shared runtime changes: " "$said"
succeeds "there it does" is_denied 0 zz1
eventually "the doctor names it" \
  tells 0 "FAIL  runtime changes do not reach all servers: Redis refuses to write the shared runtime changes" doctor
has "and the rights" "+zrevrange +zrangebyscore +zadd +zremrangebyscore ~weir:*" "$said"
is "and exits with 1" 1 "$code"
is "nor does it speak of a rollout" 0 "$(grep -c rollout <<<"$said")"
eventually "the other server's doctor knows of it" tells 1 "has runtime changes that other servers lack: 1" doctor
is "and does not speak of a rollout" 0 "$(grep -c rollout <<<"$said")"
exits "weir nodes fails" 1 weir_on 0 nodes
has "and says why" "Redis refuses to write the shared runtime changes" "$said"
eventually "the log names the rights" grep -q "Redis refuses to write the shared runtime changes.*+zadd" "${errs[0]}"
make_user
eventually "with them the ban is in effect on the other server" is_denied 1 zz1
eventually "and the doctor reports no problem" silent 0 "changes do not reach" doctor
make_user -zrevrange
eventually "a list that cannot be read" \
  tells 1 "runtime changes do not reach all servers: Redis refuses to read the shared runtime changes" doctor
make_user
until_true 20 silent 1 "changes do not reach" doctor

echo "# Redis refuses the heartbeat"
make_user -hset
eventually "the doctor names it" tells 0 "Redis refuses this server's heartbeat" doctor
has "and the rights" "+time +hset +hdel +hgetall +pexpire ~weir:*" "$said"
is "and exits with 1" 1 "$code"
exits "weir nodes fails" 1 weir_on 0 nodes
has "and says why" "Redis refuses this server's heartbeat" "$said"
until_true 20 is_old
has "the log says it" "Redis refuses this server's heartbeat" "$(cat "${errs[0]}")"
is "once" 1 "$(grep -c "refuses this server's heartbeat" "${errs[0]}")"
make_user
eventually "and when Redis accepts it again" grep -q "Redis accepts this server's heartbeat again" "${errs[0]}"
eventually "so does the doctor" silent 0 "heartbeat" doctor
finish
