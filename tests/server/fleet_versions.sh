# Servers with another version of the key format on the same Redis: weir serve does not start, and a server that finds
# them later does not join. What such servers write into Redis is written by this test.
source "$(dirname "$0")/fleet.bash"

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
exits "the server does not start" 1 weir serve --http 127.0.0.1:0 --grpc off --resp off --admin off \
  --store "redis://127.0.0.1:$redis_port" --config "$work/weir.yaml"
has "it names the fleet" "cannot join the fleet on redis://127.0.0.1:$redis_port: 2 servers" "$said"
has "and says why" "use version 1 of the key format, and this server uses version 2" "$said"
has "and what to do" "stop those servers first, or give this server another --store-prefix" "$said"

echo "# later"
redis-cli -p "$redis_port" SAVE >/dev/null
kill_redis
start_node --config "$work/weir.yaml"
start_redis # with the data that it has saved
eventually "a server that learns it later does not join" tells 0 '"barred":true' nodes --json
has "the log says why" "cannot join the fleet" "$(cat "${errs[0]}")"
has "with the reason" "2 servers with the prefix weir: use version 1 of the key format" "$(cat "${errs[0]}")"
exits "weir nodes ends with 1" 1 weir_on 0 nodes
has "and says why" "this server does not join the fleet: 2 servers with the prefix weir: use version 1" "$said"
exits "weir doctor ends with 1" 1 weir_on 0 doctor
has "and says why" "this server does not join the fleet, and each rule's on_backend_error applies" "$said"
has "checks are decided without Redis" '"decided_by":"local"' "$(ask 0 '{"path":"/search","user":"ada"}')"
is "nothing of this version is in Redis" "" "$(redis-cli -p "$redis_port" --scan --pattern 'weir:2[a-z]*')"
redis-cli -p "$redis_port" DEL 'weir:1!{0000}nodes' >/dev/null
eventually "it joins when they are gone" is_strict 0
old_servers late
eventually "a server that has joined reports those that come later" \
  tells 0 "limits admit twice as much: 1 server with the prefix weir: uses version 1" nodes
prints "in doctor, too" "servers with another key format count separately, so limits admit twice as much" \
  weir_on 0 doctor
finish
