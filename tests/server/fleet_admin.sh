# A fleet as its operators see it: weir nodes, changes that reach all servers, weir doctor, metrics, the log. The test
# causes each problem of Redis that the doctor reports.
source "$(dirname "$0")/fleet.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 100/year, algorithm: fixed_window}
YAML
sed 's/100/200/' "$work/weir.yaml" >"$work/other.yaml"
start_redis
start_one() { start_node --store-deadline 1000 "$@"; }
start_one --config "$work/weir.yaml"
start_one --config "$work/weir.yaml" --state "$work/state"
has "the store is announced" "store redis://127.0.0.1:$redis_port" "$(cat "$work"/out1)"
# search SERVER USER [COST]: the body of the answer to a check by the rule.
search() { ask "$1" "{\"user\":\"$2\",\"path\":\"/search\",\"cost\":${3:-0}}"; }
says() { tells "$1" "$2" nodes; }

echo "# nodes"
eventually "both know both" says 0 "2 servers on redis://127.0.0.1:$redis_port, available for"
weir_on 0 nodes
is "one of them is this server" 1 "$(grep -c '(this server)' <<<"$said")"
is "they have the same policy" no "$(grep -q mixed <<<"$said" && echo yes || echo no)"
has "and have their host names" "$(hostname)" "$said"
echo "store: redis://127.0.0.1:$redis_port" >>"$work/other.yaml"
start_node_with --config "$work/other.yaml" --store-deadline 1000
eventually "another policy is shown" says 0 "mixed fleet"
prints "as JSON" '"mixed":true' weir_on 2 nodes --json
metrics=$(curl -s -m 60 "http://${admins[0]}/metrics")
has "metrics: nodes" "weir_store_nodes 3" "$metrics"
has "metrics: policies" "weir_store_configs 2" "$metrics"
has "metrics: Redis is asked" "weir_store_up 1" "$metrics"

for words in 'usage user:42' 'usage --top 3' 'keys top' 'rules list'; do
  # shellcheck disable=SC2086
  prints "weir $words: whose numbers they are" "counts of this server only; the fleet has 3 servers: query each" \
    weir_on 0 $words
done
prints "and in JSON" '"nodes":3' weir_on 0 rules list --json
prints "what a rule admits without Redis" "Redis unavailable: up to 100 on 3 servers, each its share (local)" \
  weir_on 0 keys explain --user 42 --path /search

echo "# changes reach all"
holds() { [[ $(search "$1" "$2" 1) == *"\"allowed\":$3"* ]]; }
weir_on 0 keys ban --user mallory --for 1h --reason test
for n in 0 1 2; do eventually "a ban on one server is in effect on server $n" holds "$n" mallory false; done
weir_on 2 rules changes --json
weir_on 2 rules undo "$(member changes.0.id "$said")"
eventually "and is undone on another" holds 0 mallory true
weir_on 1 rules kill-switch on
killed() { [[ $(curl -s -m 60 "http://${admins[$1]}/admin/v1/status") == *"\"kill_switch\":$2"* ]]; }
eventually "the kill switch is on for all" killed 0 true
weir_on 0 rules kill-switch off
eventually "and is off for all" killed 1 false
search 0 9 100 >/dev/null
empty() { [[ $(search "$1" 9) == *'"remaining":0'* ]]; }
eventually "what one server charges, the others know" empty 1
weir_on 1 keys reset search --user 9
full() { [[ $(search "$1" 9) == *'"remaining":100'* ]]; }
eventually "a reset applies to all servers" full 0

echo "# a new server has the changes of the others"
weir_on 0 keys ban --user eve --for 1h
start_one --config "$work/weir.yaml"
eventually "a ban is in effect on a server that joined later" holds 3 eve false

echo "# the doctor"
doctor() { weir_on 0 doctor; }
until_true 20 says 0 "4 servers on"
prints "the doctor reports shared limits" "ok    limits are shared through redis://127.0.0.1:$redis_port" doctor
has "the mixed fleet" "warn  mixed fleet: the 4 servers do not all have" "$said"
redis-cli -p "$redis_port" CONFIG SET maxmemory 1gb >/dev/null
redis-cli -p "$redis_port" CONFIG SET maxmemory-policy allkeys-lru >/dev/null
exits "eviction fails it" 1 doctor
has "with the policy" "maxmemory-policy allkeys-lru" "$said"
start_one --config "$work/weir.yaml"
has "and a server logs it at its start" "resets limits" "$(cat "${errs[4]}")"
redis-cli -p "$redis_port" CONFIG SET maxmemory-policy noeviction >/dev/null
redis-cli -p "$redis_port" CONFIG SET maxmemory 1mb >/dev/null
fallen() { [[ $(search 0 1 1) == *'"decided_by":"local"'* ]]; }
eventually "without memory in Redis, the server decides" fallen
finds() { tells 0 "$1" doctor; }
eventually "the doctor reports it" finds "it is out of memory"
redis-cli -p "$redis_port" CONFIG SET maxmemory 0 >/dev/null
eventually "Redis decides again" is_strict 0
redis-cli -p "$redis_port" ACL SETUSER default -evalsha >/dev/null
until_true 20 fallen
eventually "the doctor reports missing permissions" finds "its user lacks permissions"
redis-cli -p "$redis_port" ACL SETUSER default +@all >/dev/null
until_true 20 is_strict 0
redis-cli -p "$redis_port" ACL SETUSER default resetchannels >/dev/null
eventually "the doctor reports a refused channel" finds "so servers cache no denials"
prints "and the permissions to grant" "+subscribe +publish &weir:*" doctor
has "and the log says it, too" "refuses the cache invalidation channel" "$(cat "${errs[0]}")"
redis-cli -p "$redis_port" ACL SETUSER default allchannels >/dev/null
heard_again() { ! finds "so servers cache no denials"; }
eventually "until it is permitted" heard_again
until_true 20 is_strict 0

echo "# while Redis is unavailable"
kill_redis
for n in 0 1; do until_true 20 says "$n" "UNAVAILABLE"; done
exits "it fails the doctor" 1 doctor
eventually "with the cause" finds "nothing listens at this address"
weir_on 0 keys ban --user trent --for 1h
weir_on 1 keys ban --user peggy --for 1h
eventually "a change can be made all the same" holds 0 trent false
kill -TERM "${pids[1]}"
wait "${pids[1]}"
start_one --config "$work/weir.yaml" --state "$work/state"
start_redis
for n in 0 2 3 5; do
  eventually "and reaches server $n when Redis is back" holds "$n" trent false
  eventually "and so does the other" holds "$n" peggy false
  succeeds "the one from before is not lost, though Redis has lost it" holds "$n" eve false
done
until_true 20 is_strict 0
has "the log says that Redis was unavailable" "Redis is unavailable; each rule's on_backend_error" "$(cat "${errs[0]}")"
eventually "and that it is available again" grep -q "Redis is available again" "${errs[0]}"
took "in few lines" "$(grep -c "Redis" "${errs[0]}")" 12

echo "# a failover loses the newest change, and another is made in its place before a server reads the list"
list=$(redis-cli -p "$redis_port" --scan --pattern '*changes*')
weir_on 0 keys ban --user oscar --for 1h
for n in 2 3 5; do until_true 20 holds "$n" oscar false; done
for n in 0 2 3 4 5; do kill -STOP "${pids[n]}"; done
is "the newest is lost" 1 "$(redis-cli -p "$redis_port" ZREMRANGEBYRANK "$list" -1 -1)"
start_one --config "$work/weir.yaml"
weir_on 6 keys ban --user sybil --for 1h
succeeds "a server that is new does not know it" holds 6 oscar true
for n in 0 2 3 4 5; do kill -CONT "${pids[n]}"; done
for n in 0 2 5 6; do
  eventually "server $n has the one that was lost" holds "$n" oscar false
  eventually "and the other" holds "$n" sybil false
done
listed() {
  weir_on "$1" rules changes --json
  python3 -c 'import json,sys; print([(c["id"], c["what"]) for c in json.load(sys.stdin)["changes"]])' <<<"$said"
}
has_same() { [ "$(listed "$1")" == "$(listed 6)" ]; }
for n in 0 2 3 4 5; do eventually "server $n has the same list" has_same "$n"; done
has "the log reports other ids" "renumbered, because other changes have their ids" "$(cat "${errs[0]}")"
finish
