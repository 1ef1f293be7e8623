# The wall clock is set forward and back, and runs too fast, while the server runs; a server beside it with the true
# clock is the control. Nobody gets a burst, nobody is locked out, and no calendar window comes back.
#
# libfaketime stands between the server and the wall clock only: the clock since boot, which decides, is the machine's.
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
    timeout 20 redis-cli -p "$1" | grep -A1 '^allowed' | grep -c '^1'
}
# reset_of PORT: the answer about the calendar's quota, asked without spending.
reset_of() { resp_port=$1 redis weir.limit year 5/calendar_year algorithm fixed_window cost 0; }

seconds_left() { grep -o 'reset[^ ]* [0-9]*' <<<"$1" | head -1 | grep -o '[0-9]*$'; }

# Long enough not to end during this test.
for port in "$control" "$faked"; do
  for algorithm in "${algorithms[@]}"; do
    is "$algorithm: five of seven a month" 5 "$(spend "$port" slow:"$algorithm" 5/month "$algorithm" 7)"
  done
  is "five of seven a calendar year" 5 "$(spend "$port" year 5/calendar_year fixed_window 7)"
done
reset_before=$(reset_of "$faked")

# step NAME WALL: both servers answer the same after it: what is spent stays spent, and what recovers does so in time.
step() {
  set_wall "$2"
  local algorithm fast_control fast_faked
  for algorithm in "${algorithms[@]}"; do
    is "$1: $algorithm stays spent" 0 "$(spend "$faked" slow:"$algorithm" 5/month "$algorithm" 3)"
    fast_faked=$(spend "$faked" "fast:$2:$algorithm" 4/200ms "$algorithm" 4)
    fast_control=$(spend "$control" "fast:$2:$algorithm" 4/200ms "$algorithm" 4)
    is "$1: $algorithm admits as the control does" "4 4" "$fast_control $fast_faked"
  done
  is "$1: the calendar's window is the same, and spent" 0 "$(spend "$faked" year 5/calendar_year fixed_window 3)"
  sleep 0.45  # two periods of the fast limits
  for algorithm in "${algorithms[@]}"; do
    is "$1: $algorithm locks nobody out: all of four again" 4 \
      "$(spend "$faked" "fast:$2:$algorithm" 4/200ms "$algorithm" 4)"
  done
}
step "an hour forward" "+3600"
step "an hour back" "-3600"
step "a day back" "-86400"
step "a year forward" "+31622400"
set_wall "+0"

# The wall clock runs away: both servers are asked in turn, so that they see the same time. A limit of 100 a second
# that obeyed a clock of ten times the pace would admit ten times as many.
cat >"$work/drift.py" <<'TEXT'
import socket, sys, time
doors = [socket.create_connection(("127.0.0.1", int(port)), timeout=20) for port in sys.argv[2:]]
line, admitted, end = f"CL.THROTTLE drift:{sys.argv[1]} 0 100 1\r\n".encode(), [0, 0], time.monotonic() + 1.5
while time.monotonic() < end:
    for i, door in enumerate(doors):
        door.sendall(line)
        admitted[i] += door.recv(4096).startswith(b"*5\r\n:0")
print(*admitted)
TEXT
for pace in x1.05 x10; do
  set_wall "+0 $pace"
  read -r by_control by_faked <<<"$(timeout 60 python3 "$work/drift.py" "$pace" "$control" "$faked")"
  is "wall clock $pace: $by_faked admitted in 1.5 s, by the control $by_control: within a tenth" yes \
    "$(((by_faked * 10 <= by_control * 11 + 10 && by_faked * 10 >= by_control * 9 - 10)) && echo yes)"
done

# It is started again while the wall clock is wrong: time goes on from where it was.
for wall in -86400 +86400; do
  set_wall "$wall"
  kill -KILL "$faked_pid"
  wait "$faked_pid" 2>/dev/null
  start_server --state "$work/state"
  faked=$resp_port faked_pid=$pid
  for algorithm in "${algorithms[@]}"; do
    is "started at $wall s: $algorithm stays spent" 0 "$(spend "$faked" slow:"$algorithm" 5/month "$algorithm" 2)"
  done
  is "started at $wall s: the calendar's window does not come back" 0 \
    "$(spend "$faked" year 5/calendar_year fixed_window 3)"
  before=$(seconds_left "$reset_before") now=$(seconds_left "$(reset_of "$faked")")
  is "started at $wall s: it ends when it did: in $now, before in $before" yes "$(((now <= before)) && echo yes)"
done
finish
