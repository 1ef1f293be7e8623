# Clients that people already have, against the real program: redis-cli, redis-benchmark, hiredis, redis-py,
# node-redis and ioredis; each without a password and with one. Limits refill slowly enough for a slow machine.
# What a machine does not have is skipped, by its name.
source "$(dirname "$0")/lib.bash"
clients=$(cd "$(dirname "$0")" && pwd)/clients
npm_stamp=npm-redis-6-ioredis-6
usage='ERR Cell error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]'

# facts NAME EXPECTED COMMAND...: what the client prints, line by line.
facts() { is "$1" "$2" "$(timeout 60 "${@:3}" 2>&1 | sed 's/ *$//')"; }

printf 'rules:\n- {name: steps, per: user, limit: 5/year}\n' >"$work/weir.yaml"
printf 'open sesame\n' >"$work/password"
start_server --config "$work/weir.yaml"
open_port=$resp_port
start_server --password-file "$work/password" --config "$work/weir.yaml"
locked_port=$resp_port
resp_port=$open_port

# redis-cli
is "redis-cli: one command" "0 16 15 -1 2" "$(redis cl.throttle cli 15 30 60)"
is "redis-cli -3 has nothing to complain of" "0 16 15 -1 2" "$(redis -3 cl.throttle cli3 15 30 60)"
has "redis-cli -3 shows a map" "allowed 1 reason within rule  limit 3 remaining 2 retry_after_ms 0" \
  "$(redis -3 weir.limit cli:limit 3/day algorithm sliding_log)"
is "redis-cli: a pipe of commands" "PONG 0 6 5 -1 100 PONG 1" \
  "$(printf 'PING\nCL.THROTTLE piped 5 1 100\nPING\nDEL piped\n' | redis)"
has "redis-cli: help knows the arguments" "key max-burst tokens-per-period period [TOKENS count]" \
  "$(printf 'help gcra\n' | redis)"
has "redis-cli: help knows what repeats" "field value [field value ...] [ID id] [PEEK]" \
  "$(printf 'help weir.check\n' | redis)"
has "redis-cli: a rule" "allowed 1 reason within rule steps limit 5 remaining 4" "$(redis weir.check user cli path /a)"
is "redis-cli: an error" "$usage" "$(redis cl.throttle k)"
resp_port=$locked_port
has "redis-cli: no password" "NOAUTH Authentication required." "$(redis ping)"
is "redis-cli -a" "PONG" "$(redis --no-auth-warning -a 'open sesame' ping)"
is "redis-cli -3 --user --pass" "PONG" "$(redis --no-auth-warning -3 --user default --pass 'open sesame' ping)"
has "redis-cli: a wrong password" "WRONGPASS" "$(redis --no-auth-warning -a sesame ping)"
resp_port=$open_port

# redis-benchmark: any error reply ends it.
if command -v redis-benchmark >/dev/null; then
  for options in "" "-3"; do
    answer=$(timeout 600 redis-benchmark -p "$open_port" $options -n 20000 -c 10 -P 20 -r 5000 --csv \
      throttle bench:__rand_int__ 15 3000000 60 1 2>&1)
    has "redis-benchmark $options: every command answered" '"throttle bench' "$answer"
    is "redis-benchmark $options: without an error" "" "$(grep -i error <<<"$answer")"
  done
  has "redis-benchmark -a" '"PING_INLINE"' \
    "$(timeout 600 redis-benchmark -p "$locked_port" -a 'open sesame' -n 1000 -t ping --csv 2>&1)"
else
  skip redis-benchmark "is not here"
fi

# hiredis
if cc -o "$work/hiredis" "$clients/hiredis.c" -lhiredis 2>"$work/cc.log"; then
  facts "hiredis" "ping: PONG
throttle: 0 2 1 -1 200
error: ERR Cell error: Couldn't parse as integer: x
limit: allowed 1 reason within rule nil limit 3 remaining 2 retry_after_ms 0 reset_after_ms 86400000 delay_ms 0
pipeline of 1000: 500 allowed" "$work/hiredis" "$open_port"
else
  skip hiredis "cannot be compiled (libhiredis-dev): $(head -n 1 "$work/cc.log")"
fi

# redis-py
py=/usr/bin/python3 # Debian's, for which its package is
if "$py" -c 'import redis' 2>/dev/null; then
  heard="ping: True
name: redis-py
role: master
throttle: [0, 2, 1, -1, 200]
error: ResponseError: Cell error: Couldn't parse as integer: x
limit: 1 3 2
rule: 1 steps 4
pipeline of 2000: 500 allowed, True
transaction: [1, 1, 0]
spoiled: ResponseError: unknown command 'GET' 0
watched: [True]
deleted: 2
keys of a command: ['k']"
  facts "redis-py" "$heard" "$py" "$clients/redis_py.py" "$open_port"
  facts "redis-py with a password" "without a password: AuthenticationError: Authentication required.
with a wrong one: ResponseError: WRONGPASS invalid username-password pair or user is disabled.
$heard" "$py" "$clients/redis_py.py" "$locked_port" 'open sesame'
else
  skip redis-py "is not here (python3-redis)"
fi

# node-redis and ioredis, from npm, once.
install_npm() { timeout 120 npm install --no-audit --no-fund --silent "$@"; }
fetch_npm() {
  command -v node >/dev/null && command -v npm >/dev/null && fetch_once "$npm_stamp" install_npm redis@6 ioredis@6
}

node_facts="ping: PONG
throttle: 0 2 1 -1 200
limit: allowed 1
pipeline of 1000: 500 allowed
transaction: 0 1
error: $usage"
io_facts="ping: PONG
throttle: 0 2 1 -1 200
pipeline of 1000: 500 allowed
transaction: 0 1
error: $usage"
if fetch_npm; then
  cd "$cache/$npm_stamp" || exit 1
  facts "node-redis, RESP2 and RESP3" "$node_facts
$node_facts" node "$clients/node_redis.mjs" "$open_port"
  facts "node-redis with a password" "$node_facts
$node_facts" node "$clients/node_redis.mjs" "$locked_port" 'open sesame'
  facts "ioredis" "$io_facts" node "$clients/ioredis.mjs" "$open_port"
  facts "ioredis with a password" "$io_facts" node "$clients/ioredis.mjs" "$locked_port" 'open sesame'
else
  skip node-redis "cannot be fetched (needs node and npm)"
  skip ioredis "cannot be fetched (needs node and npm)"
fi

resp_port=$open_port
still_answers "afterwards"
finish
