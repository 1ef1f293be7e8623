# Servers of a fleet that are stopped and started while Redis is unavailable, with a state file. They know how many they
# were, what was used of their shares stays used, and they write it back when Redis returns.
source "$(dirname "$0")/fleet.bash"

start_redis
# begin SERVER
begin() {
  start_server --store "redis://127.0.0.1:$redis_port" --store-deadline 100 --drain-delay 0 --state "$work/state$1"
  https[$1]=$http admins[$1]=127.0.0.1:$admin_port pids[$1]=$pid
}
# check KEY COST: the body of a check.
check() { echo "{\"key\":\"$1\",\"limit\":\"100/year\",\"algorithm\":\"fixed_window\",\"cost\":$2}"; }
# passed KEY REQUESTS: how many were let through, by both servers in turn.
passed() { count_allowed "$(check "$1" 1)" $(seq "$2" | awk '{print $1 % 2}'); }
for n in 0 1; do begin "$n"; done
know_each_other
kill -STOP "$redis_pid"
for n in 0 1; do eventually "server $n is without Redis" is_local "$n"; done
is "both admit half of their shares" 60 "$(passed k 60)"

echo "# they are stopped and started without Redis"
for n in 0 1; do kill "${pids[n]}"; done
for n in 0 1; do eventually "server $n ends" is_gone "${pids[n]}"; done
has "unsynced charges are saved" "owed " "$(cat "$work/state0.fleet")"
for n in 0 1; do begin "$n"; done
is "and is not kept twice" no "$(grep -q '^owed ' "$work/state0.fleet" && echo yes || echo no)"
is "the rest of both shares, and no more" 40 "$(passed k 120)"
is "another key has its limit, too" 100 "$(passed other 120)"

echo "# Redis is back"
kill -CONT "$redis_pid"
all_strict 0 1
is_paid() { [[ $(ask 0 "$(check "$1" 0)") == *'"remaining":0'*'"decided_by":"strict"'* ]]; }
for key in k other; do
  eventually "$key is written back, also what was admitted before the restart" is_paid "$key"
done

echo "# a file that is damaged"
kill "${pids[0]}"
until_true 20 is_gone "${pids[0]}"
sed -i 's/^seat .*/seat 7 9/' "$work/state0.fleet"
begin 0
has "is reported in the log" "the saved state is damaged or from another version" "$(cat "$work"/err*)"
eventually "and does not prevent the start" is_strict 0
finish
