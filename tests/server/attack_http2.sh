# Attacks on HTTP/2, a hundred thousand frames each: every one is cut off, costs the server less than a second of one
# core, and calls on another connection go on. The server has one thread, so that both meet in it.
source "$(dirname "$0")/lib.bash"
start_server --threads 1
attacks=0
while IFS=$'\t' read -r name ended spent slowest calls failed; do
  attacks=$((attacks + 1))
  is "$name: cut off" yes "$([[ $ended == goaway || $ended == closed ]] && echo yes || echo "$ended")"
  is "$name: for little ($spent s)" yes "$(awk -v n="$spent" 'BEGIN{if (n <= 1) print "yes"}')"
  is "$name: others are served ($calls calls, the slowest $slowest s)" 0 "$failed"
done < <(timeout 240 python3 "$(dirname "$0")/attack_http2.py" "$grpc_port" "$pid" 100000 2>&1)
is "all attacks were made" 16 "$attacks"
still_answers "after all attacks"
counts_refused "floods and resets" grpc streams 5
counts_refused "header bombs" grpc header 1
is "it said nothing of it" "" "$(cat "$work"/err*)"
finish
