# A fleet on a Redis of the test's own. Servers are named by their numbers 0, 1, ..., in the order in which they start.
# The functions start servers, send checks to one of them, run commands about one, and say who decided.
source "$(dirname "${BASH_SOURCE[0]}")/own_redis.bash"
https=() resps=() admins=() errs=() pids=()

# start_node [OPTIONS]: one more server on this Redis. start_node_with OPTIONS: the options name the store.
start_node() { start_node_with --store "redis://127.0.0.1:$redis_port" "$@"; }
start_node_with() {
  errs+=("$work/err${#server_pids[@]}")
  start_server --drain-delay 0 "$@"
  https+=("$http") resps+=("$resp_port") admins+=("127.0.0.1:$admin_port") pids+=("$pid")
}

# ask SERVER BODY: the body of the answer to a check.
ask() { curl -s -m 60 "${https[$1]}/v1/check" -d "$2"; }
# count_allowed BODY SERVER...: how many of these checks are allowed, one by each server named, in this order.
count_allowed() {
  local n count=0
  for n in "${@:2}"; do [[ $(ask "$n" "$1") == '{"allowed":true'* ]] && count=$((count + 1)); done
  echo "$count"
}
# is_strict SERVER: whether Redis decides. is_local SERVER: whether this server decides by its share.
is_decided() { [[ $(ask "$1" '{"key":"warm","limit":"9/s","cost":0}') == *"\"decided_by\":\"$2\""* ]]; }
is_strict() { is_decided "$1" strict; }
is_local() { is_decided "$1" local; }
all_strict() {
  local n
  for n; do eventually "server $n asks Redis" is_strict "$n"; done
}

# know_each_other: waits until each server knows of all.
knows() { curl -s -m 60 "http://${admins[$1]}/metrics" | grep -qx "weir_store_nodes $2"; }
know_each_other() {
  local n
  for n in "${!https[@]}"; do eventually "server $n knows of ${#https[@]} servers" knows "$n" "${#https[@]}"; done
}

# weir_on SERVER WORDS...: as `weir`, about this server. tells SERVER TEXT WORDS...: whether it prints this text.
weir_on() { weir "${@:2}" --admin "${admins[$1]}"; }
tells() {
  weir_on "$1" "${@:3}"
  [[ $said == *"$2"* ]]
}
# kill_redis: as a crash does.
kill_redis() { kill -KILL "$redis_pid"; wait "$redis_pid" 2>/dev/null; }
