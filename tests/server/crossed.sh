# Requests of the wrong protocol and random bytes on every port: no crash, no hang, no growth. The seed is printed;
# WEIR_SEED repeats it.
source "$(dirname "$0")/lib.bash"
start_server --config "$source_dir/examples/weir.yaml" --drain-delay 0
seed=${WEIR_SEED:-$RANDOM$RANDOM}
echo "seed $seed (WEIR_SEED=$seed repeats it)"

throw() {
  timeout 600 "$python" "$source_dir/tests/server/crossed.py" "$1" "$2" "$source_dir/fuzz/corpus" \
    "$http_port" "$grpc_port" "$resp_port" "$admin_port" 2>&1
}

# A web page can make a browser send these to the port of a Redis client: nothing is read, nothing is said, and the
# server hangs up at once, though the client would stay.
# end_of REQUEST: what is said, how it ends, and the milliseconds until then.
end_of() {
  "$python" - "$resp_port" "$1" <<'PYTHON'
import socket, sys, time
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
client.sendall(sys.argv[2].encode() + b"\r\nCL.THROTTLE crossed 0 1 1000\r\n")
began, said, how = time.monotonic(), b"", "closed"
try:
    while piece := client.recv(4096):
        said += piece
except ConnectionResetError:
    pass
except TimeoutError:
    how = "open"
print(f"said={said} {how}", int(1000 * (time.monotonic() - began)))
PYTHON
}
for request in 'POST / HTTP/1.1' 'Host: example.org'; do
  read -r said how milliseconds <<<"$(end_of "$request")"
  is "'$request' on the RESP port: no answer, and the server closes it" "said=b'' closed" "$said $how"
  took "'$request': milliseconds until then" "$milliseconds" 1000
done
is "and the next command is not executed" "0 1 0 -1 1000" "$(redis cl.throttle crossed 0 1 1000)"

# What is kept for the next request grows at first, each time that one is larger than all before. Then it stays.
for round in 1 2 3 4; do
  before=$(rss_kib "$pid")
  is "10,000 of everything, round $round" "10000 sent" "$(throw "$((seed + round))" 10000)"
  after=$(rss_kib "$pid")
  echo "resident: $before KiB, then $after KiB"
  [ "$round" == 1 ] || [ $((after - before)) -gt 5120 ] || break
done
is "no growth beyond 5 MiB" yes "$([ $((after - before)) -le 5120 ] && echo yes)"
still_answers "after all that"
is "it logged denials only" "" "$(grep -v '^weir: denied ' "$work"/err*)"
ends_well "and it ends well"
finish
