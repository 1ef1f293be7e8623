# Servers with another version of the key format on the same Redis: weir serve does not start, and a server that finds
# them later does not join. What such servers write into Redis is written by this test.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/own_redis.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 90/year, algorithm: fixed_window}
YAML
# old_servers ID...: live servers of version 1.
old_servers() {
  local id
  for id; do
    redis-cli -p "$redis_port" HSET 'weir:1!{0000}nodes' "$id" \
      "$(date +%s%3N) weir=0.1.0 policy=abc host=old pid=1" >/dev/null
  done
  redis-cli -p "$redis_port" PEXPIRE 'weir:1!{0000}nodes' 600000 >/dev/null
}

start_redis
old_servers a b
echo "# at the start"
said=$(timeout 600 "$program" serve --http 127.0.0.1:0 --grpc off --resp off --admin off \
  --store "redis://127.0.0.1:$redis_port" --config "$work/weir.yaml" 2>&1)
is "the server does not start" 1 $?
has "it names the fleet" "cannot join the fleet on redis://127.0.0.1:$redis_port: 2 servers" "$said"
has "and says why" "use version 1 of the key format, and this server uses version 2" "$said"
has "and what to do" "stop those servers first, or give this server another --store-prefix" "$said"

echo "# later"
redis-cli -p "$redis_port" SAVE >/dev/null
kill -9 "$redis_pid"
wait "$redis_pid" 2>/dev/null
start_server --store "redis://127.0.0.1:$redis_port" --config "$work/weir.yaml"
log="$work/err$((${#server_pids[@]} - 1))"
start_redis # with the data that it has saved
fleet() { "$program" nodes --admin "127.0.0.1:$admin_port" "$@" 2>&1; }
is_barred() { fleet --json | grep -q '"barred":true'; }
until_true 60 is_barred
is "a server that learns it later does not join" 0 $?
has "the log says why" "cannot join the fleet" "$(cat "$log")"
has "with the reason" "2 servers with the prefix weir: use version 1 of the key format" "$(cat "$log")"
said=$(fleet)
is "weir nodes ends with 1" 1 $?
has "and says why" "this server does not join the fleet: 2 servers with the prefix weir: use version 1" "$said"
said=$("$program" doctor --admin "127.0.0.1:$admin_port" 2>&1)
is "weir doctor ends with 1" 1 $?
has "and says why" "this server does not join the fleet, and each rule's on_backend_error applies" "$said"
has "checks are decided without Redis" '"decided_by":"local"' \
  "$(curl -s "$http/v1/check" -d '{"path":"/search","user":"ada"}')"
is "nothing of this version is in Redis" "" "$(redis-cli -p "$redis_port" --scan --pattern 'weir:2[a-z]*')"
redis-cli -p "$redis_port" DEL 'weir:1!{0000}nodes' >/dev/null
is_strict() { curl -s "$http/v1/check" -d '{"path":"/search","user":"bob"}' | grep -q '"decided_by":"strict"'; }
until_true 60 is_strict
is "it joins when they are gone" 0 $?
old_servers late
is_told() { fleet | grep -q "limits are admitted twice: 1 server with the prefix weir: uses version 1"; }
until_true 60 is_told
is "a server that has joined reports those that come later" 0 $?
has "in doctor, too" "servers with another key format count separately, so limits are admitted twice" \
  "$("$program" doctor --admin "127.0.0.1:$admin_port" 2>&1)"
finish
