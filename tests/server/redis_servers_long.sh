# The tests of our Redis client, of the script and of a fleet's faults once more, on other servers than Debian's
# Redis: Redis 6.2 and Valkey.
#
# They start whatever is called redis-server in PATH. What a server cannot do, such as TLS, its tests skip.
source "$(dirname "$0")/lib.bash"
provide redis6
provide valkey
for name in redis_test redis_script_test fleet_nodes_test \
  fleet_faults_test fleet_faults_refusals_test fleet_faults_settle_test fleet_faults_failover_test; do
  tests=$2/build/release/tests/$name
  [ -x "$tests" ] || missing "$name" "is not built"
  for server in "$redis6" "$valkey"; do
    mkdir -p "$work/bin"
    ln -sf "$server" "$work/bin/redis-server"
    log=$work/log_${name}_${server##*/}
    PATH=$work/bin:$PATH "$tests" --gtest_filter='-*Long*' >"$log" 2>&1
    is "$name on $("$server" --version | cut -d' ' -f1-3)" 0 $?
    grep -A9 'Failure$' "$log" | head -n 40
  done
done
finish
