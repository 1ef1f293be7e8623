# Keys made to collide under hashes that an attacker knows: none is taken for another, and they cost the server what
# random keys cost. The secret of the hash is another one in every table.
source "$(dirname "$0")/lib.bash"
seed=${WEIR_SEED:-$RANDOM}
start_server --keys 2000000
echo "      seed $seed"
timeout 250 python3 "$(dirname "$0")/hash_flood.py" "$resp_port" "$pid" "$seed" >"$work/families" 2>"$work/err_python"
is "all families were tried" 6 "$(wc -l <"$work/families")"
while read -r family keys first again ratio; do
  is "$family: each of $keys is allowed once, and not again" "$keys 0" "$first $again"
  # As much as random keys; the room is for a machine that does other things. Keys that collide would cost hundreds.
  is "$family: $ratio of the server's time for random keys" yes \
    "$(awk -v r="$ratio" 'BEGIN {if (r <= 4) print "yes"}')"
done <"$work/families"

for name in one other; do
  start_server --state "$work/$name" --keys 1000
done
# The same key lies under another name in each: what is listed is a hash with the table's secret.
for i in 1 2; do redis cl.throttle user:42 9 10 86400 >/dev/null; done
resp_port=$(awk '/^resp /{sub(/.*:/, ""); print}' "$work/out1") redis cl.throttle user:42 9 10 86400 >/dev/null
names=$(for name in one other; do "$program" state export "$work/$name" | grep -o '"name":"[0-9a-f]*"'; done)
is "one key, two tables" 2 "$(wc -l <<<"$names")"
is "two names" 2 "$(sort -u <<<"$names" | wc -l)"
cat "$work/err_python"
finish
