# Three servers on one Redis receive checks at the same moment, each for the whole limit, under every algorithm. In all
# they admit what one server alone admits. Also with /v1/checks, permits in flight and reservations.
#
# If the machine stands still for a second, a server decides without Redis. Such a try is repeated.
source "$(dirname "$0")/fleet.bash"

start_redis
for _ in 1 2 3; do start_node --store-deadline 1000; done
start_server --drain-delay 0
alone_http=$http
all_strict 0 1 2

# admitted FILE...: in all of them; nothing if a server of the fleet decided without Redis.
admitted() {
  ! grep -qE '"decided_by":"(local|open|closed)"' "$@" && cat "$@" | grep -o '"allowed":true' | wc -l
}

# together NAME PATH BODY...: each body to each of the three at once, and all of them to the one that is alone, where
# KEY and NODE in them are replaced. Compares what was admitted.
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
  is "$name: as many as one server admits" "$(admitted "$work/alone")" "$count"
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
