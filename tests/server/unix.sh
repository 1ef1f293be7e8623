# Unix sockets: every listener can be one. The server removes their files when it stops. It replaces the file of a
# killed server, but not one that is served.
source "$(dirname "$0")/lib.bash"
start_on_paths() {
  "$program" serve --http "unix:$work/http" --grpc "unix:$work/grpc" --resp "unix:$work/resp" \
    --admin "unix:$work/admin" --drain-delay 0 --shed-after 0 "$@" >"$work/out" 2>"$work/err" &
  started
  until_true 20 is_announced "$work/out"
}
start_on_paths --threads 3
has "it says where it is" "http  unix:$work/http" "$(cat "$work/out")"

curl_line=$(grep -o 'curl .*' "$work/out")
has "the curl line works" "HTTP/1.1 200 OK" "$(eval "timeout 20 $curl_line -s")"
redis_line=$(grep -o 'redis-cli .*' "$work/out")
is "the redis-cli line works" "0 16 15 -1 2" "$(eval "timeout 20 $redis_line" | paste -sd' ')"
is "the admin port answers" ok "$(curl -s -m 60 --unix-socket "$work/admin" http://weir/livez)"

# Several loops accept from one socket; all of them answer.
pongs=$(seq 40 | xargs -P 8 -I{} timeout 600 redis-cli -s "$work/resp" ping | grep -c PONG)
is "many connections are served" 40 "$pongs"

refuses 1 "another server is listening there" serve --http off --grpc off --resp "unix:$work/resp" --admin off

kill_server
is "a killed server leaves its files" yes "$([ -S "$work/resp" ] && echo yes)"
start_on_paths
is "the next server replaces them" PONG "$(timeout 600 redis-cli -s "$work/resp" ping)"
stop_server
is "a stopped server removes them" "" "$(find "$work" -type s)"

# While one still finishes what it has begun, the next one takes the place, and keeps it.
start_on_paths
old=$pid
"$python" -c 'import socket, sys, time
half = socket.socket(socket.AF_UNIX)
half.connect(sys.argv[1])
half.sendall(b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
print("half", flush=True)
time.sleep(20)' "$work/http" >"$work/half" &
half=$!
until_true 20 grep -q half "$work/half"
kill -TERM "$old"
until_true 10 test ! -S "$work/resp"
start_on_paths
is "the old one is still there" yes "$(kill -0 "$old" && echo yes)"
kill "$half"
wait "$old"
is "the successor keeps its sockets" PONG "$(timeout 600 redis-cli -s "$work/resp" ping)"
finish
