# envoyproxy/ratelimit, the reference service, and the Redis that it counts in.
#
# A test calls `provide reference` and `need_redis` first, and starts the Redis of own_redis.bash. The service reads the
# files of FOLDER/config once. Its counts belong to this run alone.
source "$(dirname "${BASH_SOURCE[0]}")/gateway.bash"

# need_redis: skips the test where there is no Redis.
need_redis() {
  command -v redis-server >/dev/null || missing redis-server "is not in PATH (./dev test puts it there)"
}

# start_reference FOLDER: sets reference_pid, reference_port and reference_grpc_port.
start_reference() {
  local debug_port n=${#server_pids[@]}
  free_port reference_port reference_grpc_port debug_port
  env HOST=127.0.0.1 PORT="$reference_port" GRPC_HOST=127.0.0.1 GRPC_PORT="$reference_grpc_port" \
    DEBUG_HOST=127.0.0.1 DEBUG_PORT="$debug_port" USE_STATSD=false DISABLE_STATS=true LOG_LEVEL=error \
    REDIS_SOCKET_TYPE=tcp REDIS_URL="127.0.0.1:$redis_port" EXPIRATION_JITTER_MAX_SECONDS=0 \
    RUNTIME_ROOT="$1" RUNTIME_SUBDIRECTORY='' RUNTIME_WATCH_ROOT=false \
    "$reference" >"$work/err_reference$n" 2>&1 </dev/null &
  reference_pid=$!
  server_pids+=("$reference_pid")
  if ! until_true 30 is_healthy "$reference_port"; then
    echo "FAIL  the reference service did not start"
    cat "$work/err_reference$n"
    exit 1
  fi
}

is_healthy() { [ "$(curl -s -m 60 "http://127.0.0.1:$1/healthcheck")" == OK ]; }
