# Three servers on one Redis are asked at once, each for all that a limit lets through, in every algorithm: together
# they let through what one server does that is asked for the same. In /v1/checks, as permits in flight and as
# reservations.
#
# A machine that stands still for a second makes a server answer by itself; what was asked then is asked once more.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/own_redis.bash"

start_redis
https=()
for _ in 1 2 3; do
  start_server --store "redis://127.0.0.1:$redis_port" --store-deadline 1000 --drain-delay 0
  https+=("$http")
done
start_server --drain-delay 0
alone_http=$http
is_strict() {
  [[ $(curl -s -m 60 "$1/v1/check" -d '{"key":"w","limit":"9/s","cost":0}') == *'"decided_by":"strict"'* ]]
}
for one in "${https[@]}"; do until_true 20 is_strict "$one" || is "a server asks Redis" yes no; done

# admitted FILE...: in all of them; nothing if a server of the fleet answered by itself.
admitted() {
  ! grep -qE '"decided_by":"(local|open|closed)"' "$@" && cat "$@" | grep -o '"allowed":true' | wc -l
}

# together NAME PATH BODY...: each body to each of the three at once, and all of them to the one that is alone, where
# KEY and NODE in them are filled in. Tells what was admitted by each.
together() {
  local name=$1 path=$2 count='' asking=() try node body
  shift 2
  for try in 1 2 3 4 5; do
    rm -f "$work"/told-*
    for node in 0 1 2; do
      for body in "$@"; do
        body=${body//KEY/$name $try}
        curl -s -m 60 "${https[node]}$path" -d "${body//NODE/$node}"
      done >"$work/told-$node" &
      asking[node]=$!
    done
    wait "${asking[@]}"
    count=$(admitted "$work"/told-*)
    [ -z "$count" ] || break
  done
  for node in 0 1 2; do
    for body in "$@"; do
      body=${body//KEY/$name}
      curl -s -m 60 "$alone_http$path" -d "${body//NODE/$node}"
    done
  done >"$work/alone"
  is "$name: as many as one server lets through" "$(admitted "$work/alone")" "$count"
  is "$name: which is the limit" "$limit" "$count"
  has "$name: by Redis" '"decided_by":"strict"' "$(cat "$work"/told-*)"
}

limit=200
for algorithm in fixed_window sliding_window sliding_log token_bucket leaky_bucket leaky_meter; do
  check="{\"key\":\"KEY\",\"limit\":\"200/year\",\"algorithm\":\"$algorithm\"}"
  printf -v checks '%.0s'"$check," {1..50}
  body="{\"checks\":[${checks%,}]}"
  together "$algorithm" /v1/checks "$body" "$body" "$body" "$body"
done
limit=20
bodies=()
for i in {1..20}; do bodies+=("{\"key\":\"KEY\",\"limit\":\"20 concurrent for 1h\",\"id\":\"NODE-$i\"}"); done
together "permits in flight" /v1/acquire "${bodies[@]}"
limit=5
bodies=()
for i in {1..5}; do bodies+=('{"key":"KEY","limit":"20/year","cost":4}'); done
together "reservations" /v1/reserve "${bodies[@]}"
finish
