# Attacks on HTTP/2, a hundred thousand frames each, again and again for a second: every one is cut off, costs the
# server less than a second of one core, and calls on other connections go on. The server has one thread, so that both
# meet in it. What others wait is held to its bound by attack_http2_long.sh.
source "$(dirname "$0")/lib.bash"
start_server --threads 1
attacks=0
while IFS=$'\t' read -r name ended times spent calls failed p99 calm; do
  attacks=$((attacks + 1))
  is "$name: cut off, each of $times" yes "$([[ $ended == goaway || $ended == closed ]] && echo yes || echo "$ended")"
  took "$name: seconds of processor time" "$spent" 1
  is "$name: others are served" 0 "$failed"
  pace "$name: calls of theirs" "$calls" 1000
  took "$name: p99 of others in us (calm $calm)" "$p99" $((2 * calm + 5000))
done < <(timeout 600 python3 "$(dirname "$0")/attack_http2.py" "$program" "$grpc_port" "$pid" 100000 \
  "${rounds:-1}" 2>&1)
is "all attacks were made" 16 "$attacks"
still_answers "after all attacks"
counts_refused "floods and resets" grpc streams 5
counts_refused "header bombs" grpc header 1
is "it said nothing of it" "" "$(cat "$work"/err*)"
finish
