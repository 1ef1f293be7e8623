# SIGUSR2: the server starts its program again, and the new process takes over the sockets while the old one finishes.
# If anything goes wrong, the old process keeps serving.
source "$(dirname "$0")/upgrade_load.bash"
upgrade_under_load 2000 9 4 2
kill -TERM "$pid"

# serves WHAT: that the old one does.
serves() {
  is "$1: it goes on" "$old yes" "$pid $(kill -0 "$old" && curl -s -f -m 60 "$http/readyz" >/dev/null && echo yes)"
}
# says N PART: the log of the server that was started as number N.
says() { until_true 20 grep -q "$2" "$work/err$1"; }
failing() {
  kill -USR2 "$pid"
  is "$1: the log says why" yes "$(says "$n" "$2" && echo yes)"
  serves "$1"
}

n=${#server_pids[@]}
start_server
old=$pid
failing "without a state file" "start the server with --state FILE"
kill -TERM "$pid"

# An upgrade starts the program that is now under the same name.
real=$program
program=$work/weir
ln -s "$real" "$program"
n=${#server_pids[@]}
start_server --state "$work/state" --upgrade-max 1s --drain-delay 0
old=$pid
ln -sf /bin/false "$program"
failing "one that fails at once" "the new process exited with code 1"
printf '#!/bin/sh\nexec sleep 60\n' >"$work/sleepy"
chmod +x "$work/sleepy"
ln -sf "$work/sleepy" "$program"
failing "one that is never ready" "the new process was not ready in time"
rm "$program"
failing "one that is not there" "cannot start the program: No such file or directory"
is "no successor is left" "" "$(successor_of "$old")"

# A stop while a successor starts ends both.
ln -sf "$work/sleepy" "$program"
kill -USR2 "$old"
eventually "a successor is started" has_successor "$old"
sleeper=$(successor_of "$old")
kill -TERM "$old"
wait "$old"
is "a stop while a successor starts" "0 yes" "$? $(has_ended "$sleeper" && echo yes)"
ln -sf "$real" "$program"
start_server --state "$work/state" --drain-delay 0
old=$pid
printf '#!/bin/sh\necho "$@" >%s/started; exec %s "$@"\n' "$work" "$real" >"$work/newer"
chmod +x "$work/newer"
ln -sf "$work/newer" "$program"

# Idle connections are ended by the old process in order.
exec {idle}<>"/dev/tcp/127.0.0.1/$http_port"
printf 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n' >&"$idle"
IFS= read -r -t 60 -u "$idle" line
has "a client has a connection" "200 OK" "$line"
while IFS= read -r -t 60 -u "$idle" line && [ "$line" != $'\r' ]; do :; done
IFS= read -r -t 60 -u "$idle" line
is "and its whole answer" ok "$line"
start_successor
eventually "the newer program was started" test -s "$work/started"
wait "$old"
is "the old one ends well" 0 $?
is "its client's connection was ended, not reset" "0" "$(timeout 60 cat <&"$idle" 2>&1; echo $?)"
is "the new one serves" "ok PONG" "$(curl -s -m 60 "$http/livez") $(redis ping)"
refuses 1 "the port is in use" serve --http "127.0.0.1:$http_port" --grpc off --resp off --admin off
kill -TERM "$pid"
eventually "it ends" has_ended "$pid"

# The file of a unix socket stays while it is handed over, and goes with the last one.
: >"$work/out0"
"$real" serve --http "unix:$work/http" --grpc off --resp off --admin off --state "$work/state" >"$work/out0" 2>&1 &
started
old=$pid
until_true 20 is_announced "$work/out0"
upgrade
wait "$old"
is "a unix socket is handed over" "0 ok" "$? $(curl -s -m 60 --unix-socket "$work/http" http://weir/livez)"
upgrade
is "and once more" ok "$(curl -s -m 60 --unix-socket "$work/http" http://weir/livez)"
kill -INT "$pid"
eventually "it ends" has_ended "$pid"
is "and takes the socket's file along" no "$([ -e "$work/http" ] && echo yes || echo no)"
finish
