# Another program truncates the state file under a running server. The server says why and exits, and starts again once
# the file is removed. Any other fault ends the process as usual.
source "$(dirname "$0")/lib.bash"
state=$work/state.weir
start_server --state "$state" --keys 100000
has "a check" "HTTP/1.1 200 OK" "$(post '{"key":"a","limit":"10/hour"}')"
truncate -s 4096 "$state"
for i in 1 2 3 4 5; do post "{\"key\":\"b$i\",\"limit\":\"10/hour\"}" >/dev/null; done
until_true 20 is_gone "$pid" || is "it exits" yes no
wait "$pid"
is "with an exit status, not by a signal" 1 "$?"
has "and says why" "another program truncated the state file" "$(cat "$work/err0")"
has "which file" "file=$state" "$(cat "$work/err0")"
has "how far" 'bytes="4096 of ' "$(cat "$work/err0")"
prints "a server is not started on it" "is truncated: 4096 bytes of" \
  weir serve --state "$state" --http 127.0.0.1:0 --grpc off --resp off --admin off
rm "$state"
start_server --state "$state" --keys 100000
has "without it, one is" "HTTP/1.1 200 OK" "$(post '{"key":"a","limit":"10/hour"}')"

kill -BUS "$pid" # a fault that is none of the file's
until_true 20 is_gone "$pid" || is "it ends" yes no
wait "$pid"
is "by the signal" $((128 + 7)) "$?"
finish
