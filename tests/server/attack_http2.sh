# Attacks on HTTP/2, a hundred thousand frames each, repeated for a second. The server cuts each attack off, spends less
# than a second of one core on it, and still answers calls on other connections. It has one thread, so both meet there.
# attack_http2_long.sh checks how long others wait.
source "$(dirname "$0")/lib.bash"
start_server --threads 1
attacks=0
while IFS=$'\t' read -r name ended times spent calls failed p99 calm; do
  attacks=$((attacks + 1))
  is "$name: cut off, each of $times" yes "$([[ $ended == goaway || $ended == closed ]] && echo yes || echo "$ended")"
  took "$name: seconds of processor time" "$spent" 1
  is "$name: calls of other clients do not fail" 0 "$failed"
  pace "$name: calls of other clients" "$calls" 1000
  took "$name: p99 of other clients in us (calm $calm)" "$p99" $((2 * calm + 5000))
done < <(timeout 600 "$python" "$(dirname "$0")/attack_http2.py" "$program" "$grpc_port" "$pid" 100000 \
  "${rounds:-1}" 2>&1)
is "all attacks were made" 16 "$attacks"
still_answers "after all attacks"
counts_refused "floods and resets" grpc streams 5
counts_refused "header bombs" grpc header 1
is "the log is empty" "" "$(cat "$work"/err*)"
finish
