# Web pages, refunds and ids, from outside. A page of another site cannot make a browser refund, charge or reset
# anything over HTTP; forward-auth is exempt. The commands of redis-cell, throttlecrab and Redis refund nothing. An id
# that was used for one cost is not free for another, in memory, in a state file and in Redis.
source "$(dirname "$0")/fleet.bash"

cat >"$work/weir.yaml" <<'YAML'
trusted_proxies: [127.0.0.1]
rules:
  - {name: login, match: {path: /login}, per: user, limit: 9/year}
  - {name: address, match: {path: /app}, per: ip, limit: 9/year}
YAML
start_server --config "$work/weir.yaml" --allow-origin https://ops.example.com --allow-origin http://localhost:3000
code() { curl -s -m 60 -o "$work/body" -w '%{http_code}' "$@"; }
page=(-H 'Origin: https://evil.example' -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: no-cors')
login='"user":"bob","path":"/login"'
left() { curl -s -m 60 "$http/v1/check?peek" -d "{$login}" | grep -o '"remaining":[0-9]*' | head -1; }

echo "# pages of other sites"
is "curl -d, as in the README" 200 "$(code "$http/v1/check" -d "{$login,\"cost\":5}")"
for fields in 'Origin: https://evil.example' 'Origin: null' 'Sec-Fetch-Site: cross-site' 'Sec-Fetch-Site: same-site' \
  'Origin: http://localhost:9'; do
  is "a refund with $fields" 403 \
    "$(code "$http/v1/check" -H "$fields" -H 'Content-Type: text/plain' -d "{$login,\"cost\":-3}")"
done
has "the answer says what to do" '--allow-origin' "$(cat "$work/body")"
is "a name that leads here" 403 "$(code "$http/v1/check" -H "Host: evil.example:$http_port" \
  -H "Origin: http://evil.example:$http_port" -H 'Sec-Fetch-Site: same-origin' -d "{$login,\"cost\":-3}")"
is "a reset" 403 "$(code -X DELETE "$http/v1/keys/login?user=bob" "${page[@]}")"
is "a cancelled reservation" 403 "$(code "$http/v1/cancel" "${page[@]}" -d "{$login,\"id\":\"1\"}")"
rls='{"domain":"d","descriptors":[{"entries":[{"key":"user","value":"bob"},{"key":"path","value":"/login"}],
  "hitsAddend":3,"isNegativeHits":true}]}'
is "a refund as Envoy's" 403 "$(code "$http/json" "${page[@]}" -d "$rls")"
is "nothing of that had an effect" '"remaining":4' "$(left)"
counts_refused "pages" http origin 9
is "an allowed page" 200 "$(code "$http/v1/check" -H 'Origin: https://ops.example.com' -H 'Sec-Fetch-Site: cross-site' \
  -d "{$login,\"cost\":-1}")"
is "whose refund has an effect" '"remaining":5' "$(left)"
is "a page of the server's own address" 200 \
  "$(code "$http/v1/check?peek" -H "Origin: $http" -H 'Sec-Fetch-Site: same-origin' -d "{$login}")"

echo "# forward-auth: these fields are those of the gateway's client"
client=(-H 'X-Forwarded-Uri: /app' -H 'X-Forwarded-For: 192.0.2.1')
is "a page behind the gateway" 200 "$(code "$http/auth" "${client[@]}" "${page[@]}")"
is "on a path like ours" 200 "$(code "$http/auth/v1/check" "${client[@]}" "${page[@]}")"

echo "# the setting"
is "an invalid origin" 1 "$("$program" serve --allow-origin ops.example.com >"$work/said" 2>&1; echo $?)"
has "says how to write it" \
  "--allow-origin: 'ops.example.com' is not an origin; write scheme, host" "$(cat "$work/said")"

echo "# refunds of Redis clients"
redis CL.THROTTLE k 8 9 31536000 5 >/dev/null
refunds='; to refund, use WEIR.LIMIT with a COST below 0'
negative="ERR Cell error: Negative quantities are not supported$refunds"
is "CL.THROTTLE" "$negative" "$(redis CL.THROTTLE k 8 9 31536000 -3)"
is "CL.THROTTLE, with another bucket" "$negative" "$(redis CL.THROTTLE k 7 8 31536000 -12)"
is "THROTTLE" "ERR negative quantity: -3$refunds" "$(redis THROTTLE k 9 9 31536000 -3)"
has "GCRA" "ERR value is out of range" "$(redis GCRA k 8 9 31536000 TOKENS -3)"
is "these had no effect" 4 "$(redis CL.THROTTLE k 8 9 31536000 0 | awk '{print $3}')"
has "WEIR.LIMIT refunds" "remaining 7" "$(redis WEIR.LIMIT k '9/year burst 9' ALGORITHM token_bucket COST -3)"
has "and so does POST /v1/check" '"remaining":9' \
  "$(curl -s "$http/v1/check" -d '{"key":"k","limit":"9/year burst 9","algorithm":"token_bucket","cost":-2}')"
has "and is_negative_hits" '"limitRemaining":8' "$(curl -s "$http/json" -d "$rls")"

once() { curl -s -m 60 "$http/v1/check" -d "{\"key\":\"once\",\"limit\":\"100/year\",\"id\":\"7\",\"cost\":$1}"; }
many() {
  curl -s -m 60 "$http/v1/checks" \
    -d "{\"checks\":[{\"key\":\"once\",\"limit\":\"100/year\",\"id\":\"7\",\"cost\":$1}]}"
}
by_rules() {
  curl -s -m 60 "$http/v1/check" -H 'Idempotency-Key: 7' -d "{\"user\":\"eve\",\"path\":\"/login\",\"cost\":$1}"
}
check_ids() {
  echo "# an id binds the cost: $1"
  has "$1: nothing" '"remaining":100' "$(once 0)"
  has "$1: one permit" '"remaining":99' "$(once 1)"
  has "$1: sent again" '"remaining":99' "$(once 1)"
  has "$1: another cost is charged" '"remaining":19' "$(once 80)"
  has "$1: and is free when it is sent again" '"remaining":19' "$(once 80)"
  has "$1: among many, too" '"remaining":19' "$(many 80)"
  has "$1: beyond what is left" '"allowed":false' "$(once 81)"
  has "$1: RESP, by the same id" "remaining 17" "$(redis WEIR.LIMIT once 100/year ID 7 COST 2)"
  has "$1: sent again over HTTP" '"remaining":17' "$(once 2)"
  has "$1: by the rules" '"remaining":8' "$(by_rules 1)"
  has "$1: by the rules, again" '"remaining":8' "$(by_rules 1)"
  has "$1: by the rules, over RESP" "remaining 5" "$(redis WEIR.CHECK user eve path /login cost 3 ID 7)"
  has "$1: by the rules, dearer" '"remaining":1' "$(by_rules 4)"
  has "$1: by the rules, beyond what is left" '"allowed":false' "$(by_rules 5)"
}
check_ids memory
start_server --config "$work/weir.yaml" --state "$work/state"
check_ids file
stop_server
start_server --config "$work/weir.yaml" --state "$work/state"
has "file: sent again after a restart" '"remaining":17' "$(once 80)"
has "file: another cost after a restart" '"remaining":14' "$(once 3)"
start_redis
start_node --config "$work/weir.yaml" --store-deadline 1000 --allow-origin https://ops.example.com
all_strict 0
check_ids redis
is "redis: a page of another site" 403 "$(code "$http/v1/check" "${page[@]}" -d "{$login,\"cost\":-3}")"
is "redis: an allowed page" 200 "$(code "$http/v1/check" -H 'Origin: https://ops.example.com' -d "{$login}")"
finish
