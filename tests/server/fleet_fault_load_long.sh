# Redis is killed for 15 seconds, paused for 10, and slow, under 5,000 checks a second: no client waits longer than the
# deadline, and Redis decides again within a second. F01, F02 and F03, by the numbers of docs/guarantees.md.
source "$(dirname "$0")/fleet_fault.bash"

# load SERVER SECONDS: sets p99 (milliseconds) and lost, errors and answers that did not come.
load() {
  local out
  out=$(timeout 600 "$program" bench --json --resp ":${resps[$1]}" --pipeline 1 --connections 200 --rate 5000 \
    --seconds "$2" --keys 10000 2>&1)
  number() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" <<<"$out"; }
  p99=$(number p99_ns | awk '{printf "%.2f", $1 / 1e6}')
  lost=$(($(number errors) + $(number unanswered)))
}
# since FILE TIME TO: seconds from a time until answers were made so.
since() { awk -v a="$2" -v to="$3" '$1 == "change" && $3 == to && $2 > a {printf "%.3f", $2 - a; exit}' "$1"; }

start_redis
start_fleet 1 --threads 1
load 0 3
echo "      by Redis: p99 $p99 ms"
is "by Redis: nothing is lost" 0 "$lost"

# away NAME SECONDS BEGIN END: the command BEGIN makes Redis unavailable, and END available again, under load.
away() {
  local before watcher cut healed
  before=$(rss_kib "${pids[0]}")
  watch 0 "$(($2 + 6))" "$work/watch" &
  watcher=$!
  sleep 1
  cut=$EPOCHREALTIME
  $3
  load 0 "$2"
  is "$1: nothing is lost" 0 "$lost"
  at_most "$1: p99 at 5,000 a second, milliseconds" "$p99" 20
  $4
  healed=$EPOCHREALTIME
  until_true 20 is_strict 0 || is "$1: it asks Redis again" yes no
  wait "$watcher"
  is "$1: no answer failed" 0 "$(seen errors "$work/watch")"
  echo "      $1: watched $(grep = "$work/watch" | paste -sd' ')"
  at_most "$1: seconds until it decides without Redis" "$(since "$work/watch" "$cut" local)" 0.1
  at_most "$1: seconds until it asks Redis again" "$(since "$work/watch" "$healed" strict)" 1
  at_most "$1: memory grew by KiB" "$(($(rss_kib "${pids[0]}") - before))" 32768
}
pause_redis() { kill -STOP "$redis_pid"; }
resume_redis() { kill -CONT "$redis_pid"; }
away "F01 killed" 15 kill_redis start_redis
away "F02 paused" 10 pause_redis resume_redis

echo "# F03 slow answers"
slow_port=$((32700 + RANDOM % 60))
echo 0 >"$work/slow"
python3 "$(dirname "$0")/slow_proxy.py" "$slow_port" "$redis_port" "$work/slow" >"$work/proxy.log" 2>&1 &
server_pids+=("$!")
start_server --config "$work/weir.yaml" --store "redis://127.0.0.1:$slow_port" --drain-delay 0 --threads 1
https+=("$http") resps+=("$resp_port")
until_true 20 is_strict 1 || is "it asks Redis through the proxy" yes no
for delay in 5 25 100 1000 "0 0.01 500"; do
  echo "$delay" >"$work/slow"
  sleep 0.5
  load 1 5
  is "F03 $delay ms: nothing is lost" 0 "$lost"
  at_most "F03 $delay ms: p99 at 5,000 a second, milliseconds" "$p99" 20
  echo "      F03 $delay ms: now $(made 1 /search)"
done
echo 0 >"$work/slow"
healed=$(now_us)
until_true 20 is_strict 1 || is "it asks Redis again" yes no
at_most "F03 seconds until it asks Redis again" "$(seconds_since "$healed")" 1
finish
