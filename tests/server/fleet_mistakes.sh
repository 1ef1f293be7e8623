# Wrong addresses of Redis, and a Redis of another kind than the address says. weir validate, weir serve, its log and
# weir doctor name the place, the cause and the fix.
source "$(dirname "$0")/fleet.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 100/year, algorithm: fixed_window}
YAML
# with_store URL: a config with that store, in its fourth line.
with_store() {
  cp "$work/weir.yaml" "$work/bad.yaml"
  printf '\nstore: %s\n' "$1" >>"$work/bad.yaml"
}
# start_in_vain ARGUMENTS: a server that does not start.
start_in_vain() { weir serve --http 127.0.0.1:0 --grpc off --resp off --admin off "$@"; }

echo "# in the config"
with_store redis://127.0.0.1:22o99
exits "validate refuses it" 1 weir validate "$work/bad.yaml"
has "with its place" "bad.yaml:4:8: \`store\`: Redis URL: '22o99' is not a port; write a number" "$said"
exits "so does serve" 1 start_in_vain --config "$work/bad.yaml"
has "in the same words" "bad.yaml:4:8: \`store\`: Redis URL: '22o99' is not a port; write a number" "$said"

echo "# files that cannot be read"
with_store "redis://weir@127.0.0.1?password_file=$work/none"
exits "a password file that is not there ends the start" 1 start_in_vain --config "$work/bad.yaml"
has "with the place" "bad.yaml: \`store\`: the password file $work/none cannot be opened: No such file" "$said"
for setting in "ca=$work/none" "cert=$work/none&key=$work/none"; do
  exits "${setting%%=*}: it does not start" 1 start_in_vain --store "rediss://127.0.0.1?$setting"
  has "  and names the file" "--store: ${setting%%&*} cannot be read: No such file" "$said"
done

echo "# a Redis of another kind than the address says"
start_redis
# start_on URL: one more server, which has received one request.
start_on() {
  start_node_with --config "$work/weir.yaml" --store "$1"
  post '{"user":"1","path":"/search"}' >/dev/null
}
finds() { tells "$1" "$2" doctor; }
start_on "rediss://127.0.0.1:$redis_port"
start_on "redis+cluster://127.0.0.1:$redis_port"
echo secret >"$work/pass"
start_on "redis://default@127.0.0.1:$redis_port?password_file=$work/pass"
eventually "TLS to a plain port" finds 0 "if this server does not use TLS, write redis://"
succeeds "doctor warns of a server that never reached Redis" finds 0 "admits each limit in full"
prints "so does weir nodes" "admits each limit in full" weir_on 0 nodes
at=127.0.0.1:$redis_port
eventually "a Redis that is no cluster" \
  finds 1 "Redis at $at: cannot read the cluster map: $at: ERR This instance has cluster support disabled"
succeeds "  and what to write" finds 1 "this Redis is not a cluster: write redis://"
rm "$work/pass"
for type in normal pubsub; do redis-cli -p "$redis_port" CLIENT KILL TYPE "$type" SKIPME yes >/dev/null; done
eventually "a password file that has gone" finds 2 "the password file $work/pass cannot be opened"
succeeds "  and what to do" finds 2 "fix the file: the server reads it at each connect"
is "the network is not blamed" 1 "$(finds 2 "check that this machine reaches it" && echo 0 || echo 1)"
sleep 5 # of an outage in which nothing new happens
for n in 0 1 2; do
  is "server $n: the outage began once" 1 "$(grep -c "Redis is unavailable; each rule's on_backend_error" "${errs[n]}")"
  is "server $n: it logs once that it cannot read changes" 1 "$(grep -c "cannot sync runtime changes" "${errs[n]}")"
done
echo secret >"$work/pass"
eventually "when it is there again" grep -q "Redis is available again" "${errs[2]}"
eventually "changes are in sync again" grep -q "runtime changes are in sync again" "${errs[2]}"
finish
