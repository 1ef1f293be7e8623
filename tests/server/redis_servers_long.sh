# The tests of our Redis client once more, on servers of other ages and makers than Debian's: Redis 6.2 and Valkey.
#
# They start whatever is called redis-server in PATH. What a server cannot do, such as TLS, its tests skip.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/fetch.bash"
tests=$2/build/release/tests/redis_test
[ -x "$tests" ] || missing redis_test "is not built"
provide redis6
provide valkey
for server in "$redis6" "$valkey"; do
  mkdir -p "$work/bin"
  ln -sf "$server" "$work/bin/redis-server"
  log=$work/log_${server##*/}
  PATH=$work/bin:$PATH "$tests" --gtest_filter='-*Long*' >"$log" 2>&1
  is "$("$server" --version | cut -d' ' -f1-3)" 0 $?
  grep -A9 'Failure$' "$log" | head -n 40
done
finish
