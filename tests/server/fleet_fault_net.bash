# Partitions and loss between servers and their Redis, in a network of its own where a firewall drops what we want lost:
# F04, F05 and F06. For fleet_fault_net.sh and fleet_fault_net_long.sh.
#
# net_faults PARTITION LOSS: seconds of each.
source "$(dirname "$0")/own_network.bash"
source "$(dirname "$0")/fleet_fault.bash"

# weather ADDRESSES [CONDITION]: from now on, what goes to or comes from Redis by these addresses is dropped.
weather() {
  nft -f - <<NFT
table inet trial { }
delete table inet trial
table inet trial {
  chain lost {
    type filter hook input priority 0;
    ip daddr { $1 } tcp dport $redis_port ${2:-} drop
    ip saddr { $1 } tcp sport $redis_port ${2:-} drop
  }
}
NFT
}
fair() { nft delete table inet trial; }

net_faults() {
  local healed n back=''
  start_redis
  start_fleet 3 --threads 1

  echo "# F05 one of three is cut off"
  weather 127.0.0.2
  until_true 20 is_local 1 || is "the server that is cut off decides without Redis" yes no
  is "its share" 4 "$(spend 6 cut /search 1)"
  is "the limit, by the other servers" 12 "$(spend 8 cut /search 0 2)"
  is "they ask Redis" "strict strict" "$(made 0 /search) $(made 2 /search)"
  fair
  healed=$(now_us)
  until_true 20 is_strict 1 || is "it asks Redis again" yes no
  took "F05 seconds until it asks Redis again" "$(seconds_since "$healed")" 2
  is "no further request passes" 0 "$(spend 1 cut /search 0 1 2)"

  echo "# F04 all are cut off, and no packet is answered"
  watch 0 500 "$work/watch" &
  local watcher=$!
  sleep 0.3
  local cut=$EPOCHREALTIME
  weather 127.0.0.1,127.0.0.2,127.0.0.3
  for n in 0 1 2; do until_true 20 is_local "$n" || is "server $n decides without Redis" yes no; done
  is "the limit, in shares" 12 "$(spend 6 parted /search 0 1 2)"
  is "closed" 0 "$(spend 2 parted /shut 0 1 2)"
  sleep "$1"
  fair
  healed=$EPOCHREALTIME
  for n in 0 1 2; do until_true 20 is_strict "$n" || is "server $n asks Redis again" yes no; done
  has_seen_it() {
    back=$(awk -v a="$healed" '$1 == "change" && $3 == "strict" && $2 > a {printf "%.3f", $2 - a; exit}' "$work/watch")
    [ -n "$back" ]
  }
  until_true 20 has_seen_it
  touch "$work/watch.end"
  wait "$watcher"
  rm "$work/watch.end"
  is "no answer failed" 0 "$(seen errors "$work/watch")"
  local opened
  opened=$(awk -v a="$cut" -v b="$(first_change "$work/watch" local)" 'BEGIN{printf "%.3f", b - a}')
  echo "      watched: $(grep = "$work/watch" | paste -sd' ')"
  took "F04 seconds until it decides without Redis" "$opened" 0.1
  took "F04 the longest wait, milliseconds" "$(seen longest "$work/watch")" 100
  took "F04 seconds until it asks Redis again" "${back:-never}" 2
  paid() { [ "$(spend 1 parted /search 0 1 2)" == 0 ]; }
  eventually "what was admitted is written back" paid

  echo "# F06 three of ten packets are lost, each way"
  weather 127.0.0.1,127.0.0.2,127.0.0.3 'numgen random mod 100 < 30'
  watch 0 "$2" "$work/watch"
  fair
  echo "      watched: $(grep = "$work/watch" | paste -sd' ')"
  healed=$(now_us)
  for n in 0 1 2; do until_true 20 is_strict "$n" || is "server $n asks Redis again" yes no; done
  took "F06 seconds until all ask Redis again" "$(seconds_since "$healed")" 2
  is "no answer failed" 0 "$(seen errors "$work/watch")"
  took "F06 the longest wait, milliseconds" "$(seen longest "$work/watch")" 100
  took "F06 changes of how it decides" "$(seen changes "$work/watch")" 6
}
