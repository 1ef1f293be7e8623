# A Redis of the test's own, which it may kill and start again on the same port. start_redis sets redis_pid and
# redis_port; it picks another port if the first is taken.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
command -v redis-server >/dev/null || { echo "this test needs redis-server; ./dev setup brings it"; exit 1; }
redis_port=''
redis_before=() # what it is run by
redis_bind=(127.0.0.1)
# Another test may have one on the same port: ours lies in our folder.
redis_answers() { [ "$(timeout 60 redis-cli -p "$redis_port" CONFIG GET dir 2>/dev/null | tail -1)" == "$work" ]; }
# start_redis [SETTINGS]
start_redis() {
  local ports=("$redis_port") port
  [ -n "$redis_port" ] || ports=($((20000 + RANDOM % 12700)) $((20000 + RANDOM % 12700)) $((20000 + RANDOM % 12700)))
  for port in "${ports[@]}"; do
    redis_port=$port
    "${redis_before[@]}" redis-server --port "$redis_port" --bind "${redis_bind[@]}" --save '' --appendonly no \
      --protected-mode no --dir "$work" "$@" >"$work/redis.log" 2>&1 &
    redis_pid=$!
    server_pids+=("$redis_pid")
    until_true 20 redis_answers && return
  done
  echo "FAIL  redis-server did not start"
  cat "$work/redis.log"
  exit 1
}
