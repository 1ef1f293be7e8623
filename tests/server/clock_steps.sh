# The wall clock is set forward and back, and runs too fast, while the server runs. A second server with the true clock
# is the control. No client gets a burst or is locked out, and no calendar window comes back.
#
# libfaketime fakes the wall clock only. The clock since boot, which decides, is the machine's.
source "$(dirname "$0")/lib.bash"
faketime=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null | head -1)
[ -n "$faketime" ] || { echo "skip  libfaketime is not here; ./dev setup brings it"; exit 77; }

start_server
control=$resp_port
true_program=$program
cat >"$work/faked" <<TEXT
#!/bin/sh
export LD_PRELOAD=$faketime FAKETIME_TIMESTAMP_FILE=$work/wall FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
exec "$true_program" "\$@"
TEXT
chmod +x "$work/faked"
program=$work/faked
set_wall() { echo "$1" >"$work/.wall" && mv "$work/.wall" "$work/wall"; }
set_wall "+0"
start_server --state "$work/state" --keys 10000
faked=$resp_port faked_pid=$pid
set_wall "+3600"
shown=$(LD_PRELOAD=$faketime FAKETIME_TIMESTAMP_FILE=$work/wall FAKETIME_NO_CACHE=1 date +%s)
is "the wall clock can be set" 3600 $(((shown - $(date +%s) + 50) / 100 * 100))
set_wall "+0"

algorithms=(token_bucket leaky_meter fixed_window sliding_window sliding_log)
# spend PORT KEY LIMIT ALGORITHM TIMES: how many are allowed.
spend() {
  for ((i = 0; i < $5; ++i)); do echo "WEIR.LIMIT $2 $3 ALGORITHM $4"; done |
    timeout 600 redis-cli -p "$1" | grep -A1 '^allowed' | grep -c '^1'
}
# reset_of PORT: the answer about the calendar's quota, asked without spending.
reset_of() { resp_port=$1 redis weir.limit year 5/calendar_year algorithm fixed_window cost 0; }

left_of() { sed 's/.*reset_after_ms \([0-9]*\).*/\1/' <<<"$1"; }

# Spent once, and for longer than any step: a clock that obeyed the wall would give them back after an hour, or a year.
# The hour and more begins now, so that its window does not end while this runs.
quotas=("$(period_from_now 3600)s" month)
for port in "$control" "$faked"; do
  for algorithm in "${algorithms[@]}"; do
    for quota in "${quotas[@]}"; do
      is "$algorithm: 5/$quota of seven" 5 "$(spend "$port" "$quota:$algorithm" "5/$quota" "$algorithm" 7)"
    done
  done
  is "five of seven a calendar year" 5 "$(spend "$port" year 5/calendar_year fixed_window 7)"
done
spent_at=$(now_us)
reset_before=$(reset_of "$faked")

# Keys that recover, the same ones in all steps, on both servers in turn. Four of six pass; the clock is set, and none
# of six passes; two periods later, four of six pass. Prints "ALGORITHM CONTROL: 4 0 4 FAKED: 4 0 4" for each. A whole
# period is two seconds, so a permit is half a second; it is asked when a window has most of its time left.
cat >"$work/step.py" <<'PYTHON'
import os, re, socket, sys, time
wall, place, algorithms = sys.argv[1], sys.argv[2], sys.argv[5:]
connections = [socket.create_connection(("127.0.0.1", int(port)), timeout=60) for port in sys.argv[3:5]]
PERIOD = 2

def ask(connection, key, algorithm, times):
    line = f"WEIR.LIMIT {key}:{algorithm} 4/{PERIOD}s ALGORITHM {algorithm}\r\n".encode()
    got = b""
    connection.sendall(line * times)
    while got.count(b"delay_ms\r\n:") < times or not got.endswith(b"\r\n"):
        got += connection.recv(65536)
    return got

def allowed(algorithm):
    return [ask(connection, "fast", algorithm, 6).count(b"allowed\r\n:1\r\n") for connection in connections]

def left_ms(connection):  # of the window; its own key, so that nothing else is touched
    return int(re.search(rb"reset_after_ms\r\n:(\d+)", ask(connection, "window", "fixed_window", 1))[1])

def set_wall(text):
    with open(place + "/.wall", "w") as file:
        file.write(text + "\n")
    os.rename(place + "/.wall", place + "/wall")

end = time.monotonic() + 60
while time.monotonic() < end and min(map(left_ms, connections)) < 1200:
    time.sleep(0.05)
rounds = [{name: allowed(name) for name in algorithms}]
set_wall(wall)
rounds.append({name: allowed(name) for name in algorithms})
time.sleep(2 * PERIOD + 0.1)
rounds.append({name: allowed(name) for name in algorithms})
time.sleep(2 * PERIOD)
for name in algorithms:
    control, faked = ([str(answers[name][i]) for answers in rounds] for i in (0, 1))
    print(name, "control:", *control, "faked:", *faked)
PYTHON

# step NAME WALL: both servers answer the same after it: what is spent stays spent, and what recovers does so in time.
step() {
  local algorithm quota line
  timeout 600 "$python" "$work/step.py" "$2" "$work" "$control" "$faked" "${algorithms[@]}" >"$work/step" 2>&1
  for algorithm in "${algorithms[@]}"; do
    line=$(grep "^$algorithm " "$work/step" || cat "$work/step")
    is "$1: $algorithm recovers in its time, as the control does" "$algorithm control: 4 0 4 faked: 4 0 4" "$line"
    for quota in "${quotas[@]}"; do
      is "$1: $algorithm: 5/$quota stays spent" 0 \
        "$(spend "$faked" "$quota:$algorithm" "5/$quota" "$algorithm" 3)"
    done
  done
  is "$1: the calendar's window is the same, and spent" 0 "$(spend "$faked" year 5/calendar_year fixed_window 3)"
}
step "an hour forward" "+3600"
step "an hour back" "-3600"
step "a day back" "-86400"
step "a year forward" "+31622400"
set_wall "+0"

# The wall clock runs too fast. Both servers get checks in turn, so that they see the same time. If a limit of 100 a
# second followed the faster clock, it would admit more: 575 instead of 550 in five seconds.
cat >"$work/drift.py" <<'TEXT'
import socket, sys, time
connections = [socket.create_connection(("127.0.0.1", int(port)), timeout=60) for port in sys.argv[2:]]
line, admitted, end = f"CL.THROTTLE drift:{sys.argv[1]} 49 100 1\r\n".encode(), [0, 0], time.monotonic() + 5
while time.monotonic() < end:
    for i, connection in enumerate(connections):
        connection.sendall(line)
        admitted[i] += connection.recv(4096).startswith(b"*5\r\n:0")
    time.sleep(0.001)  # far more often than a permit comes back, and both cores stay free for others
print(*admitted)
TEXT
for pace in x1.05 x10; do
  set_wall "+0 $pace"
  read -r by_control by_faked <<<"$(timeout 600 "$python" "$work/drift.py" "$pace" "$control" "$faked")"
  is "wall clock $pace: $by_faked admitted in 5 s, by the control $by_control: within 2 %" yes \
    "$(((by_control > 100 && by_faked * 50 <= by_control * 51 && by_faked * 50 >= by_control * 49)) && echo yes)"
done

# It is started again while the wall clock is wrong: time goes on from where it was. The calendar's window ends with the
# year of the wall clock, as the server last noted it: as announced, or earlier by what this clock has been ahead, or
# later by what it is behind.
fastest=10
for wall in -86400 +86400; do
  set_wall "$wall"
  kill -KILL "$faked_pid"
  wait "$faked_pid" 2>/dev/null
  start_server --state "$work/state"
  faked=$resp_port faked_pid=$pid
  for algorithm in "${algorithms[@]}"; do
    for quota in "${quotas[@]}"; do
      is "started at $wall s: $algorithm: 5/$quota stays spent" 0 \
        "$(spend "$faked" "$quota:$algorithm" "5/$quota" "$algorithm" 2)"
    done
  done
  is "started at $wall s: the calendar's window does not come back" 0 \
    "$(spend "$faked" year 5/calendar_year fixed_window 3)"
  before=$(left_of "$reset_before") now=$(left_of "$(reset_of "$faked")")
  passed=$((($(now_us) - spent_at) / 1000))
  early=$((before - passed - now)) ahead=$((86400000 + fastest * passed)) behind=$((wall < 0 ? -wall * 1000 : 0))
  is "started at $wall s: it ends with the year, $early ms before it was announced to end" yes \
    "$(((early >= -behind - 2000 && early <= ahead)) && echo yes)"
done
finish
