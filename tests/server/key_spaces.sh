# Keys that callers bring never meet keys of rules or of Envoy's files, whatever bytes a caller sends: in memory, on a
# state file and in Redis. Each listener tries to spend, refund and reset what rule and file have counted.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/own_redis.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: login, match: {path: /login}, per: user, limit: 9/year burst 9, algorithm: token_bucket}
  - {name: hour, match: {path: /login}, per: user, limit: 99/year, algorithm: fixed_window}
YAML
mkdir "$work/envoy"
cat >"$work/envoy/edge.yaml" <<'YAML'
domain: edge
descriptors:
  - {key: user, value: bob, rate_limit: {unit: year, requests_per_unit: 9}}
YAML

login() { curl -s -m 60 "$http/v1/check$1" -d '{"user":"bob","path":"/login"}'; }
envoy() { # HITS
  curl -s -m 60 "$http/json" \
    -d "{\"domain\":\"edge\",\"descriptors\":[{\"entries\":[{\"key\":\"user\",\"value\":\"bob\"}],\"hits_addend\":$1}]}"
}
left_of_login() { login '?peek' | grep -o '"remaining":[0-9]*' | tail -n +2 | paste -sd' '; }
left_of_envoy() { envoy 0 | grep -o '"limitRemaining":[0-9]*'; }
# in_json BYTES, in_query BYTES: bytes as JSON and as a query write them.
in_json() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../\\u00&/g'; }
in_query() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g'; }

# attack NAME KEY: all that a caller can do with a key of its own, by every listener that takes one.
ids=0
attack() {
  local key=$2 id=$((++ids)) json query
  json=$(in_json "$key") query=$(in_query "$key")
  redis CL.THROTTLE "$key" 8 9 31536000 3 >"$work/said"
  redis THROTTLE "$key" 9 9 31536000 3 >>"$work/said"
  redis GCRA "$key" 8 9 31536000 TOKENS 3 >>"$work/said"
  redis WEIR.LIMIT "$key" '9/year burst 9' ALGORITHM token_bucket COST 2 >>"$work/said"
  redis WEIR.LIMIT "$key" 99/year ALGORITHM fixed_window COST 2 ID "$id" >>"$work/said"
  redis WEIR.LIMIT "$key" '9/year burst 9' ALGORITHM token_bucket COST -9 >>"$work/said"
  redis WEIR.LIMIT "$key" 99/year ALGORITHM fixed_window COST -9 >>"$work/said"
  redis WEIR.LIMIT "$key" 9/year ALGORITHM fixed_window COST 5 >>"$work/said"
  local fixed="{\"key\":\"$json\",\"limit\":\"99/year\",\"algorithm\":\"fixed_window\",\"cost\":7"
  curl -s -m 60 "$http/v1/check" -d "$fixed}" >>"$work/said"
  curl -s -m 60 "$http/v1/checks" -d "{\"checks\":[$fixed},$fixed}]}" >>"$work/said"
  curl -s -m 60 "$http/v1/reserve" -d "$fixed,\"id\":\"$id\"}" >>"$work/said"
  curl -s -m 60 "$http/v1/commit" -d "$fixed,\"id\":\"$id\"}" >>"$work/said"
  is "$1: something was counted" yes "$([ "$(redis DEL "$key")" -gt 0 ] && echo yes)"
  redis WEIR.RESET "$key" >>"$work/said"
  curl -s -m 60 -X DELETE "$http/v1/keys?key=$query" >>"$work/said"
  is "$1: no request failed" 0 "$(grep -c -i 'ERR\|"status":[45]0' "$work/said")"
}

# The names that a caller could guess: as rules wrote them before, and as rules and files write them now.
rule=$(printf '\005login\004user\003bob')
window=$(printf '\004hour\004user\003bob')
file='envoy/year/4:edge4:user3:bob'
attack_all() {
  login '' >/dev/null
  login '' >/dev/null
  envoy 2 >/dev/null
  local rules_left envoy_left space key
  rules_left=$(left_of_login) envoy_left=$(left_of_envoy)
  is "$1: two were spent by the rules" '"remaining":7 "remaining":97' "$rules_left"
  is "$1: and by the file" '"limitRemaining":7' "$envoy_left"
  for space in '' '\001' '\002' '\003' '\001\001' '\003\001' '\003\003\001'; do
    for key in "$rule" "$window" "$file"; do
      attack "$1, ${space:-as it is}, ${key: -3}" "$(printf "$space")$key"
    done
    is "$1, ${space:-as it is}: the rules have counted nothing of it" "$rules_left" "$(left_of_login)"
    is "$1, ${space:-as it is}: nor has the file" "$envoy_left" "$(left_of_envoy)"
  done
  is "$1: a rule's key is reset by its rule" 1 "$(redis WEIR.RESET login user bob)"
  has "$1: which frees it" '"remaining":9' "$(left_of_login)"
  has "$1: over HTTP, too" '"reset":true' "$(curl -s -m 60 -X DELETE "$http/v1/keys/hour?user=bob")"
  is "$1: all of it" '"remaining":9 "remaining":99' "$(left_of_login)"
}

echo "# keys of callers are as many as there are texts"
start_server --config "$work/weir.yaml" --envoy "$work/envoy"
for key in a $'\001a' $'\002a' $'\003a' $'\003\001a' $'\003\003a'; do
  is "$(in_json "$key") is a key of its own" 1 "$(redis CL.THROTTLE "$key" 4 5 31536000 4 | awk '{print $3}')"
done
for key in a $'\001a' $'\002a' $'\003a' $'\003\001a' $'\003\003a'; do
  is "$(in_json "$key") is reset alone" 1 "$(redis DEL "$key")"
done

echo "# in memory"
attack_all memory
has "top names a caller's key as it was sent" '\x01\x05login\x04user\x03bob' \
  "$("$program" keys top --admin "127.0.0.1:$admin_port" 2>&1)"

echo "# on a state file"
start_server --config "$work/weir.yaml" --envoy "$work/envoy" --state "$work/state"
attack_all file

echo "# in Redis"
start_redis
start_server --config "$work/weir.yaml" --envoy "$work/envoy" --store "redis://127.0.0.1:$redis_port" \
  --store-deadline 1000
is_strict() {
  [[ $(curl -s "$http/v1/check" -d '{"key":"warm","limit":"9/s","cost":0}') == *'"decided_by":"strict"'* ]]
}
until_true 20 is_strict || is "the server asks Redis" yes no
attack_all redis
finish
