# A fleet as those see it who look after it: weir nodes, changes that reach all servers, weir doctor, metrics, the log;
# with all of Redis's troubles that the doctor has names for made so once.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/own_redis.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 100/year, algorithm: fixed_window}
YAML
sed 's/100/200/' "$work/weir.yaml" >"$work/other.yaml"
start_redis
https=() admins=() errs=() pids=()
start_one() {
  errs+=("$work/err${#server_pids[@]}")
  start_server --store "redis://127.0.0.1:$redis_port" --store-deadline 1000 --drain-delay 0 "$@"
  https+=("$http") admins+=("127.0.0.1:$admin_port") pids+=("$pid")
}
start_one --config "$work/weir.yaml"
start_one --config "$work/weir.yaml" --state "$work/state"
has "the store is announced" "store redis://127.0.0.1:$redis_port" "$(cat "$work"/out1)"
# weir_on SERVER ARGUMENTS: what the command says.
weir_on() {
  local n=$1
  shift
  "$program" "$@" --admin "${admins[n]}" 2>&1
}
# ask SERVER USER [COST]: the answer's body.
ask() { curl -s -m 60 "${https[$1]}/v1/check" -d "{\"user\":\"$2\",\"path\":\"/search\",\"cost\":${3:-0}}"; }
says() { [[ $(weir_on "$1" nodes) == *"$2"* ]]; }

echo "# nodes"
until_true 20 says 0 "2 nodes on redis://127.0.0.1:$redis_port, available for"
is "both know both" 0 $?
said=$(weir_on 0 nodes)
is "one of them is asked" 1 "$(grep -c '(this server)' <<<"$said")"
is "they have the same policy" no "$(grep -q mixed <<<"$said" && echo yes || echo no)"
has "and say who they are" "$(hostname)" "$said"
echo "store: redis://127.0.0.1:$redis_port" >>"$work/other.yaml"
errs+=("$work/err${#server_pids[@]}")
start_server --config "$work/other.yaml" --store-deadline 1000 --drain-delay 0
https+=("$http") admins+=("127.0.0.1:$admin_port") pids+=("$pid")
until_true 20 says 0 "mixed fleet"
is "another policy is shown" 0 $?
has "as JSON" '"mixed":true' "$(weir_on 2 nodes --json)"
metrics=$(curl -s -m 60 "http://${admins[0]}/metrics")
has "metrics: nodes" "weir_store_nodes 3" "$metrics"
has "metrics: policies" "weir_store_configs 2" "$metrics"
has "metrics: Redis is asked" "weir_store_up 1" "$metrics"

for words in 'usage user:42' 'usage --top 3' 'keys top' 'rules list'; do
  # shellcheck disable=SC2086
  said=$(weir_on 0 $words)
  has "weir $words: whose numbers they are" "counts of this server only; the fleet has 3 servers: query each" "$said"
done
has "and in JSON" '"nodes":3' "$(weir_on 0 rules list --json)"
has "what a rule lets through without Redis" "Redis unavailable: up to 100 on 3 servers, each its share (local)" \
  "$(weir_on 0 keys explain --user 42 --path /search)"

echo "# changes reach all"
holds() { [[ $(ask "$1" "$2" 1) == *"\"allowed\":$3"* ]]; }
weir_on 0 keys ban --user mallory --for 1h --reason test >/dev/null
for n in 0 1 2; do
  until_true 20 holds "$n" mallory false
  is "a ban on one server holds on server $n" 0 $?
done
id=$(weir_on 2 rules changes --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["changes"][0]["id"])')
weir_on 2 rules undo "$id" >/dev/null
until_true 20 holds 0 mallory true
is "and is undone on another" 0 $?
weir_on 1 rules kill-switch on >/dev/null
killed() { [[ $(curl -s -m 60 "http://${admins[$1]}/admin/v1/status") == *"\"kill_switch\":$2"* ]]; }
until_true 20 killed 0 true
is "the kill switch is one" 0 $?
weir_on 0 rules kill-switch off >/dev/null
until_true 20 killed 1 false
is "and is off for all" 0 $?
ask 0 9 100 >/dev/null
empty() { [[ $(ask "$1" 9) == *'"remaining":0'* ]]; }
until_true 20 empty 1
is "spent for all" 0 $?
weir_on 1 keys reset search --user 9 >/dev/null
full() { [[ $(ask "$1" 9) == *'"remaining":100'* ]]; }
until_true 20 full 0
is "a reset is one for all" 0 $?

echo "# a new server has the changes of the others"
weir_on 0 keys ban --user eve --for 1h >/dev/null
start_one --config "$work/weir.yaml"
until_true 20 holds 3 eve false
is "a ban holds on a server that came later" 0 $?

echo "# the doctor"
doctor() {
  said=$(weir_on 0 doctor)
  code=$?
}
until_true 20 says 0 "4 nodes on"
doctor
has "all is well with Redis" "ok    limits are shared through redis://127.0.0.1:$redis_port" "$said"
has "the mixed fleet" "warn  mixed fleet: the 4 servers do not all have" "$said"
redis-cli -p "$redis_port" CONFIG SET maxmemory 1gb >/dev/null
redis-cli -p "$redis_port" CONFIG SET maxmemory-policy allkeys-lru >/dev/null
doctor
is "eviction fails it" 1 "$code"
has "by its name" "maxmemory-policy allkeys-lru" "$said"
start_one --config "$work/weir.yaml"
has "and is told when a server starts" "resets limits" "$(cat "${errs[4]}")"
redis-cli -p "$redis_port" CONFIG SET maxmemory-policy noeviction >/dev/null
redis-cli -p "$redis_port" CONFIG SET maxmemory 1mb >/dev/null
fallen() { [[ $(ask 0 1 1) == *'"decided_by":"local"'* ]]; }
until_true 20 fallen
is "a Redis without memory is gone on without" 0 $?
finds() { [[ $(weir_on 0 doctor) == *"$1"* ]]; }
until_true 20 finds "it is out of memory"
is "OOM" 0 $?
redis-cli -p "$redis_port" CONFIG SET maxmemory 0 >/dev/null
is_strict() { [[ $(ask "$1" warm) == *'"decided_by":"strict"'* ]]; }
until_true 20 is_strict 0
is "it is asked again" 0 $?
redis-cli -p "$redis_port" ACL SETUSER default -evalsha >/dev/null
until_true 20 fallen
until_true 20 finds "its user lacks permissions"
is "wrong rights" 0 $?
redis-cli -p "$redis_port" ACL SETUSER default +@all >/dev/null
until_true 20 is_strict 0
redis-cli -p "$redis_port" ACL SETUSER default resetchannels >/dev/null
until_true 20 finds "so servers cache no denials"
is "the channel is forbidden" 0 $?
has "what is to be permitted" "+subscribe +publish &weir:*" "$(weir_on 0 doctor)"
has "and the log says it, too" "refuses the cache invalidation channel" "$(cat "${errs[0]}")"
redis-cli -p "$redis_port" ACL SETUSER default allchannels >/dev/null
heard_again() { ! finds "so servers cache no denials"; }
until_true 20 heard_again
is "until it is permitted" 0 $?
until_true 20 is_strict 0

echo "# while Redis is away"
kill -KILL "$redis_pid"
wait "$redis_pid" 2>/dev/null
for n in 0 1; do until_true 20 says "$n" "UNAVAILABLE"; done
doctor
is "it fails the doctor" 1 "$code"
until_true 20 finds "nothing listens at this address"
is "with the cause" 0 $?
weir_on 0 keys ban --user trent --for 1h >/dev/null
weir_on 1 keys ban --user peggy --for 1h >/dev/null
until_true 20 holds 0 trent false
is "a change can be made all the same" 0 $?
kill -TERM "${pids[1]}"
wait "${pids[1]}"
start_one --config "$work/weir.yaml" --state "$work/state"
start_redis
for n in 0 2 3 5; do
  until_true 20 holds "$n" trent false
  is "and reaches server $n when Redis is back" 0 $?
  until_true 20 holds "$n" peggy false
  is "and so does the other" 0 $?
  holds "$n" eve false
  is "nor is the one from before lost, though Redis has lost it" 0 $?
done
until_true 20 is_strict 0
has "the log tells that it was away" "Redis is unavailable; each rule's on_backend_error" "$(cat "${errs[0]}")"
until_true 20 grep -q "Redis is available again" "${errs[0]}"
is "and that it is back" 0 $?
took "in few lines" "$(grep -c "Redis" "${errs[0]}")" 12

echo "# a failover loses the newest change, and another is made in its place before anybody looks"
list=$(redis-cli -p "$redis_port" --scan --pattern '*changes*')
weir_on 0 keys ban --user oscar --for 1h >/dev/null
for n in 2 3 5; do until_true 20 holds "$n" oscar false; done
for n in 0 2 3 4 5; do kill -STOP "${pids[n]}"; done
is "the newest is lost" 1 "$(redis-cli -p "$redis_port" ZREMRANGEBYRANK "$list" -1 -1)"
start_one --config "$work/weir.yaml"
weir_on 6 keys ban --user sybil --for 1h >/dev/null
holds 6 oscar true
is "a server that is new does not know it" 0 $?
for n in 0 2 3 4 5; do kill -CONT "${pids[n]}"; done
for n in 0 2 5 6; do
  until_true 20 holds "$n" oscar false
  is "server $n has the one that was lost" 0 $?
  until_true 20 holds "$n" sybil false
  is "and the other" 0 $?
done
listed() {
  weir_on "$1" rules changes --json |
    python3 -c 'import json,sys; print([(c["id"], c["what"]) for c in json.load(sys.stdin)["changes"]])'
}
has_same() { [ "$(listed "$1")" == "$(listed 6)" ]; }
for n in 0 2 3 4 5; do
  until_true 20 has_same "$n"
  is "server $n has the same list" 0 $?
done
has "the log tells of other ids" "renumbered, because other changes have their ids" "$(cat "${errs[0]}")"
finish
