# A server that stands still for a while, as in a paused virtual machine. For freeze.sh and freeze_long.sh: freeze
# SECONDS
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
freeze() {
  local answer half
  start_server --drain-delay 0
  # A request is half there while the server cannot read it.
  exec {half}<>"/dev/tcp/127.0.0.1/$http_port"
  printf 'GET /livez HTTP/1.1\r\nHost: x' >&"$half"
  sleep 0.2
  kill -STOP "$pid"
  # Queued meanwhile: 200 checks of 20/s, of which a burst of 5 may pass however long it stood still.
  timeout 600 "$python" - "$resp_port" "$1" "$pid" "$admin_port" >"$work/frozen" <<'PYTHON' &
import os, signal, socket, sys, time
port, seconds, pid, admin = map(int, sys.argv[1:])
clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
for client in clients:
    client.sendall(b"CL.THROTTLE frozen 4 20 1\r\n" * 10)
time.sleep(seconds)
woken = time.monotonic()
os.kill(pid, signal.SIGCONT)
allowed = 0
clients[0].recv(1, socket.MSG_PEEK)
first = time.monotonic() - woken
with socket.create_connection(("127.0.0.1", admin), timeout=60) as connection:
    connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    ready = time.monotonic() - woken if b"200 OK" in connection.recv(4096) else -1
for client in clients:
    got = b""
    client.settimeout(20)
    while got.count(b"\r\n") < 10 * 6:
        got += client.recv(65536)
    allowed += got.count(b"*5\r\n:0\r\n")
most = 5 + 20 * (time.monotonic() - woken) + 1
print("within its bound" if 5 <= allowed <= most else f"{allowed} passed, {most} may")
# A client that asks in the second after it need not wait long either.
longest, asker = 0, clients[0]
while time.monotonic() < woken + 1.5:
    began = time.monotonic()
    asker.sendall(b"PING\r\n")
    assert asker.recv(100) == b"+PONG\r\n"
    longest = max(longest, time.monotonic() - began)
    time.sleep(0.002)
print(f"first={first:.3f}\nready={ready:.3f}\nlongest={longest:.3f}")
PYTHON
  wait $!
  answer=$(cat "$work/frozen")
  value() { sed -n "s/^$1=//p" <<<"$answer"; }
  has "no burst beyond the burst" "within its bound" "$answer"
  took "seconds until the first answer" "$(value first)" 0.1
  is "it says that it is ready" yes "$([[ "$(value ready)" == [0-9]* ]] && echo yes)"
  took "seconds until it is ready" "$(value ready)" 1
  took "seconds that a client waits afterwards" "$(value longest)" 0.1
  printf '\r\n\r\n' >&"$half"
  IFS= read -r -t 60 -u "$half" line
  has "a client in the middle of a request is not disconnected" "200 OK" "$line"
  local before after
  before=$(awk '{print $14 + $15}' "/proc/$pid/stat")
  sleep 1
  after=$(awk '{print $14 + $15}' "/proc/$pid/stat")
  is "and it is quiet: no storm of timers" yes "$( ((after - before < $(getconf CLK_TCK) / 4)) && echo yes)"
  ends_well "it ends well"
}
