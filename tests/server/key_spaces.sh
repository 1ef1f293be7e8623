# Keys of callers never meet keys of rules or of Envoy's files, whatever bytes a caller sends: in memory, in a state
# file and in Redis. Each listener tries to charge, refund and reset what a rule and a file have counted.
source "$(dirname "$0")/fleet.bash"

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
# escaped PREFIX BYTES: each byte as this prefix and two hexadecimal digits.
escaped() {
  local LC_ALL=C i byte out=''
  for ((i = 0; i < ${#2}; ++i)); do printf -v byte '%s%02x' "$1" "'${2:i:1}" && out+=$byte; done
  echo "$out"
}

# attack NAME KEY: all that a caller can do with a key of its own, on every listener that takes one. One process sends
# all requests of a listener.
ids=0
attack() {
  local id=$((++ids)) key fixed
  key="\"$(escaped '\x' "$2")\""
  timeout 600 redis-cli -p "$resp_port" >"$work/said" 2>&1 <<COMMANDS
CL.THROTTLE $key 8 9 31536000 3
THROTTLE $key 9 9 31536000 3
GCRA $key 8 9 31536000 TOKENS 3
WEIR.LIMIT $key "9/year burst 9" ALGORITHM token_bucket COST 2
WEIR.LIMIT $key 99/year ALGORITHM fixed_window COST 2 ID $id
WEIR.LIMIT $key "9/year burst 9" ALGORITHM token_bucket COST -9
WEIR.LIMIT $key 99/year ALGORITHM fixed_window COST -9
WEIR.LIMIT $key 9/year ALGORITHM fixed_window COST 5
COMMANDS
  fixed="{\"key\":\"$(escaped '\u00' "$2")\",\"limit\":\"99/year\",\"algorithm\":\"fixed_window\",\"cost\":7"
  curl -s -m 60 "$http/v1/check" -d "$fixed}" \
    --next -m 60 "$http/v1/checks" -d "{\"checks\":[$fixed},$fixed}]}" \
    --next -m 60 "$http/v1/reserve" -d "$fixed,\"id\":\"$id\"}" \
    --next -m 60 "$http/v1/commit" -d "$fixed,\"id\":\"$id\"}" >>"$work/said"
  is "$1: something was counted" yes "$([ "$(redis DEL "$2")" -gt 0 ] && echo yes)"
  redis WEIR.RESET "$2" >>"$work/said"
  curl -s -m 60 -X DELETE "$http/v1/keys?key=$(escaped % "$2")" >>"$work/said"
  is "$1: no request failed" 0 "$(grep -c -i 'ERR\|"status":[45]0' "$work/said")"
  is "$1: every limit was answered" 9 "$(grep -c allowed "$work/said")"
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
  is "$1: the rules charged two" '"remaining":7 "remaining":97' "$rules_left"
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
  is "$(escaped '\x' "$key") is a key of its own" 1 "$(redis CL.THROTTLE "$key" 4 5 31536000 4 | awk '{print $3}')"
done
for key in a $'\001a' $'\002a' $'\003a' $'\003\001a' $'\003\003a'; do
  is "$(escaped '\x' "$key") is reset alone" 1 "$(redis DEL "$key")"
done

echo "# in memory"
attack_all memory
prints "top names a caller's key as it was sent" '\x01\x05login\x04user\x03bob' \
  weir keys top --admin "127.0.0.1:$admin_port"

echo "# on a state file"
start_server --config "$work/weir.yaml" --envoy "$work/envoy" --state "$work/state"
attack_all file

echo "# in Redis"
start_redis
start_node --config "$work/weir.yaml" --envoy "$work/envoy" --store-deadline 1000
all_strict 0
attack_all redis
finish
