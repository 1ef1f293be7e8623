# The service that Weir answers for, envoyproxy/ratelimit, beside this run's Weir: it, and the Redis it counts in.
#
# On top of lib.bash, gateway.bash and fetch.bash; a test says `provide reference` first. The service reads the files of
# FOLDER/config, once; its counts are this run's alone.

need_redis() {
  command -v redis-server >/dev/null || missing redis-server "is not in PATH (./dev test puts it there)"
}

# start_redis: sets redis_port.
start_redis() {
  need_redis
  free_port redis_port
  redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no --dir "$work" >"$work/err_redis" 2>&1 &
  server_pids+=($!)
  until_true 20 is_open "$redis_port" || { echo "FAIL  Redis did not start"; cat "$work/err_redis"; exit 1; }
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
