# A stop in the middle of long pipelines splits no request, and does not wait for delayed responses.
# src/server/connection_test.cc tests a full connection.
source "$(dirname "$0")/lib.bash"
talk() { timeout 600 "$python" "$source_dir/tests/server/pipelines.py" "$@" 2>&1; }

for round in 1 2 3; do
  start_server --config "$source_dir/examples/weir.yaml" --threads 1 --drain-delay 0 --drain-max 10min
  is "a stop while pipelines arrive, round $round" "none was torn" "$(talk "$resp_port" "$http_port" "$pid")"
  wait "$pid"
  is "  and it ends well" 0 $?
done

# A request behind an answer that is held back: the stop releases the one and lets go of the other.
cat >"$work/queue.yaml" <<'YAML'
answers: {hold_max: 60s}
rules: [{name: queue, per: global, limit: 1/minute burst 5, algorithm: leaky_bucket}]
YAML
start_server --config "$work/queue.yaml" --drain-delay 0 --drain-max 10min
exec {held}<>"/dev/tcp/127.0.0.1/$http_port"
for _ in 1 2 3; do printf 'GET /auth HTTP/1.1\r\nHost: x\r\n\r\n'; done >&"$held"
IFS= read -r -t 60 -u "$held" line
has "the first passes at once" "200 OK" "$line"
sleep 0.3
began=$SECONDS
ends_well "a stop does not wait for what is held: exit code"
is "  and ends before the request's turn" yes "$([ $((SECONDS - began)) -lt 50 ] && echo yes)"
has "the delayed request is answered" "200 OK" "$(timeout 60 cat <&"$held")"
finish
