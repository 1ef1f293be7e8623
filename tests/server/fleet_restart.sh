# Servers of a fleet that are stopped and started while Redis is away, with a state: they know how many they were, their
# shares are as far spent as before, and what was let through is paid when Redis is back.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/own_redis.bash"

start_redis
https=() admins=() pids=()
# begin SERVER
begin() {
  start_server --store "redis://127.0.0.1:$redis_port" --store-deadline 100 --drain-delay 0 --state "$work/state$1"
  https[$1]=$http admins[$1]=$admin_port pids[$1]=$pid
}
# ask SERVER KEY [?peek]: the answer's body.
ask() {
  curl -s -m 60 "${https[$1]}/v1/check${3:-}" \
    -d "{\"key\":\"$2\",\"limit\":\"100/year\",\"algorithm\":\"fixed_window\"}"
}
is_strict() { [[ $(ask "$1" warm '?peek') == *'"decided_by":"strict"'* ]]; }
is_local() { [[ $(ask "$1" warm '?peek') == *'"decided_by":"local"'* ]]; }
knows_both() { curl -s -m 60 "http://127.0.0.1:${admins[$1]}/metrics" | grep -qx 'weir_store_nodes 2'; }
# passed KEY REQUESTS: how many were let through, by both servers in turn.
passed() {
  local count=0 n
  for n in $(seq 1 "$2"); do [[ $(ask $((n % 2)) "$1") == '{"allowed":true'* ]] && count=$((count + 1)); done
  echo "$count"
}
for n in 0 1; do begin "$n"; done
for n in 0 1; do
  until_true 20 knows_both "$n"
  is "server $n knows of two" 0 $?
done
kill -STOP "$redis_pid"
for n in 0 1; do until_true 20 is_local "$n" || is "server $n is without Redis" yes no; done
is "both let half of their shares through" 60 "$(passed k 60)"

echo "# they are stopped and started without Redis"
for n in 0 1; do kill "${pids[n]}"; done
for n in 0 1; do
  until_true 20 is_gone "${pids[n]}"
  is "server $n ends" 0 $?
done
has "what is owed is kept" "owed " "$(cat "$work/state0.fleet")"
for n in 0 1; do begin "$n"; done
is "and is not kept twice" no "$(grep -q '^owed ' "$work/state0.fleet" && echo yes || echo no)"
is "the rest of both shares, and no more" 40 "$(passed k 120)"
is "another key has its limit, too" 100 "$(passed other 120)"

echo "# Redis is back"
kill -CONT "$redis_pid"
for n in 0 1; do
  until_true 20 is_strict "$n"
  is "server $n asks it again" 0 $?
done
is_paid() { [[ $(ask 0 "$1" '?peek') == *'"remaining":0'*'"decided_by":"strict"'* ]]; }
for key in k other; do
  until_true 20 is_paid "$key"
  is "$key is paid, by those who let it through before the start and after" 0 $?
done

echo "# a file that is damaged"
kill "${pids[0]}"
until_true 20 is_gone "${pids[0]}"
sed -i 's/^seat .*/seat 7 9/' "$work/state0.fleet"
begin 0
has "is told of" "the saved state is damaged or from another version" "$(cat "$work"/err*)"
until_true 20 is_strict 0
is "and in nobody's way" 0 $?
finish
