# Addresses of Redis that are wrong, and servers of Redis that are others than the address says: what is told by
# weir validate, weir serve, its log and weir doctor names the place, the cause and the fix.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/own_redis.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 100/year, algorithm: fixed_window}
YAML
# with_store URL: a config with that store, in its fourth line.
with_store() {
  cp "$work/weir.yaml" "$work/bad.yaml"
  printf '\nstore: %s\n' "$1" >>"$work/bad.yaml"
}
# start_in_vain ARGUMENTS: what a server says that does not start; sets code.
start_in_vain() {
  said=$(timeout 600 "$program" serve --http 127.0.0.1:0 --grpc off --resp off --admin off "$@" 2>&1)
  code=$?
}

echo "# in the config"
with_store redis://127.0.0.1:22o99
said=$("$program" validate "$work/bad.yaml" 2>&1)
is "validate refuses it" 1 $?
has "with its place" "bad.yaml:4:8: \`store\`: Redis URL: '22o99' is not a port; write a number" "$said"
start_in_vain --config "$work/bad.yaml"
is "so does serve" 1 "$code"
has "in the same words" "bad.yaml:4:8: \`store\`: Redis URL: '22o99' is not a port; write a number" "$said"

echo "# files that cannot be read"
with_store "redis://weir@127.0.0.1?password_file=$work/none"
start_in_vain --config "$work/bad.yaml"
is "a password file that is not there ends the start" 1 "$code"
has "with the place" "bad.yaml: \`store\`: the password file $work/none cannot be opened: No such file" "$said"
for setting in "ca=$work/none" "cert=$work/none&key=$work/none"; do
  start_in_vain --store "rediss://127.0.0.1?$setting"
  is "${setting%%=*}: it does not start" 1 "$code"
  has "  and names the file" "--store: ${setting%%&*} cannot be read: No such file" "$said"
done

echo "# a Redis that is another than the address says"
start_redis
# start_on URL: as the server 0, 1 ...; errs and admins have what it says and where it is asked.
admins=() errs=()
start_on() {
  errs+=("$work/err${#server_pids[@]}")
  start_server --config "$work/weir.yaml" --store "$1" --drain-delay 0
  admins+=("127.0.0.1:$admin_port")
  curl -s -m 60 "$http/v1/check" -d '{"user":"1","path":"/search"}' >/dev/null
}
finds() { [[ $("$program" doctor --admin "${admins[$1]}" 2>&1) == *"$2"* ]]; }
start_on "rediss://127.0.0.1:$redis_port"
start_on "redis+cluster://127.0.0.1:$redis_port"
echo secret >"$work/pass"
start_on "redis://default@127.0.0.1:$redis_port?password_file=$work/pass"
until_true 20 finds 0 "if this server does not use TLS, write redis://"
is "TLS to a plain port" 0 $?
is "doctor warns of a server that never reached Redis" 0 "$(finds 0 "admits whole limits"; echo $?)"
has "so does weir nodes" "admits whole limits" "$("$program" nodes --admin "${admins[0]}" 2>&1)"
at=127.0.0.1:$redis_port
until_true 20 finds 1 \
  "Redis at $at: Redis: cannot read the cluster map: $at: ERR This instance has cluster support disabled"
is "a cluster that is none" 0 $?
finds 1 "this Redis is not a cluster: write redis://"
is "  and what to write" 0 $?
rm "$work/pass"
for type in normal pubsub; do redis-cli -p "$redis_port" CLIENT KILL TYPE "$type" SKIPME yes >/dev/null; done
until_true 20 finds 2 "the password file $work/pass cannot be opened"
is "a password file that has gone" 0 $?
finds 2 "fix the file: the server reads it at each connect"
is "  and what to do" 0 $?
is "nobody is sent to the network for it" 1 "$(finds 2 "check that this machine reaches it" && echo 0 || echo 1)"
sleep 5 # of an outage in which nothing new happens
for n in 0 1 2; do
  is "server $n: the outage began once" 1 "$(grep -c "Redis is unavailable; each rule's on_backend_error" "${errs[n]}")"
  is "server $n: that changes are not read is told once" 1 "$(grep -c "cannot sync runtime changes" "${errs[n]}")"
done
echo secret >"$work/pass"
for line in "Redis is available again" "runtime changes are in sync again"; do
  until_true 20 grep -q "$line" "${errs[2]}"
  is "when it is there again: $line" 0 $?
done
finish
