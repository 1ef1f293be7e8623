# Keys made to collide under hashes that an attacker knows. None is taken for another, and they cost the server what
# random keys cost. Each table has its own secret for the hash. hash_flood_long.sh has a million of each kind.
source "$(dirname "$0")/lib.bash"
seed=${WEIR_SEED:-$RANDOM}
count=${count:-100000}
echo "      seed $seed"
for family in random java prefix suffix complement crc; do
  start_server --keys $((3 * count)) --threads 1
  read -r keys first again ratio <<<"$(timeout 600 "$python" "$(dirname "$0")/hash_flood.py" \
    "$resp_port" "$pid" "$seed" "$count" "$family" 2>"$work/err_python")"
  is "$family: each of $count is allowed once, and not again" "$count $count 0" "$keys $first $again"
  # As much as random keys: 80 % of their throughput. Keys that collide would cost hundreds.
  took "$family: of the server's time for random keys" "$ratio" 1.25
  kill "$pid"
  cat "$work/err_python"
done

for name in one other; do
  start_server --state "$work/$name" --keys 1000
done
# The same key lies under another name in each: what is listed is a hash with the table's secret.
for i in 1 2; do redis cl.throttle user:42 9 10 86400 >/dev/null; done
one=$work/out$((${#server_pids[@]} - 2))
resp_port=$(awk '/^resp /{sub(/.*:/, ""); print}' "$one") redis cl.throttle user:42 9 10 86400 >/dev/null
names=$(for name in one other; do "$program" state export "$work/$name" | grep -o '"name":"[0-9a-f]*"'; done)
is "one key, two tables" 2 "$(wc -l <<<"$names")"
is "two names" 2 "$(sort -u <<<"$names" | wc -l)"
finish
