# What a service manager receives: ready, reloading, alive, stopping, and the main process after an upgrade. The manager
# here is a socket that a script listens on.
source "$(dirname "$0")/upgrade_load.bash"
cp "$source_dir/examples/weir.yaml" "$work/weir.yaml"

# listen ADDRESS FILE
listen() {
  "$python" "$source_dir/tests/server/notified.py" "$1" >"$2" 2>"$work/err_notified" &  # ended by cleanup
  server_pids+=($!)
  until_true 20 grep -q listening "$2"
}
heard() { until_true 20 grep -q "$1" "$work/told"; }

listen "$work/notify" "$work/told"
export NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=2000000
n=${#server_pids[@]}
start_server --config "$work/weir.yaml" --state "$work/state" --drain-delay 0
is "it is ready" yes "$(heard 'READY=1 STATUS=Serving.' && echo yes)"
is "it sends WATCHDOG=1 repeatedly" yes \
  "$(is_alive() { (($(grep -c '^WATCHDOG=1$' "$work/told") > 2)); }; until_true 20 is_alive && echo yes)"
kill -HUP "$pid"
is "it reads its rules again" yes "$(heard 'RELOADING=1 MONOTONIC_USEC=[0-9]* STATUS=' && echo yes)"
is_ready_again() { (($(grep -c READY=1 "$work/told") == 2)); }
eventually "and is ready again" is_ready_again
start_successor
is "after an upgrade, another is the service" yes "$(heard "READY=1 MAINPID=$pid" && echo yes)"
wait "$old"
is "the old one ends well" 0 $?
: >"$work/told"
is "the new one is alive" yes "$(heard WATCHDOG=1 && echo yes)"
kill -TERM "$pid"
is "it says that it stops" yes "$(heard 'STOPPING=1' && echo yes)"
eventually "it is gone" has_ended "$pid"

# An abstract socket; and a watchdog that is not ours.
listen "@weir-$$" "$work/told"
export NOTIFY_SOCKET=@weir-$$ WATCHDOG_PID=1 WATCHDOG_USEC=100000
start_server
is "an abstract socket receives it, too" yes "$(heard READY=1 && echo yes)"
kill -HUP "$pid"
is "without rules and TLS, a SIGHUP is answered" yes "$(heard RELOADING=1 && until_true 20 is_ready_again && echo yes)"
is "and the server goes on" ok "$(curl -s -m 60 "$http/livez")"
stop_server
is "the watchdog of another process gets nothing" 0 "$(grep -c WATCHDOG "$work/told")"

# A socket without a listener does not stop the server.
export NOTIFY_SOCKET=$work/nobody
start_server
is "without a listener it serves" ok "$(curl -s -m 60 "$http/livez")"
finish
