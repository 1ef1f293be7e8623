"""Load for drain.sh and upgrade.sh: new HTTP connections at a rate, one check on each, beside some that are kept.

new_connections.py PORT RATE SECONDS BODY [--keep N] [--ready PORT]

Every check that fails is counted by how it failed; the last line tells all counts. Kept connections ask one check
after the other, and are made anew when the server says that one ends. With --ready it does as a load balancer does:
it asks /readyz there, and half a second after a 503 it opens no more connections.
"""
import argparse
import collections
import errno
import select
import socket
import struct
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("port", type=int)
parser.add_argument("rate", type=int)
parser.add_argument("seconds", type=float)
parser.add_argument("body")
parser.add_argument("--keep", type=int, default=0)
parser.add_argument("--ready", type=int, default=0)
options = parser.parse_args()

AT_ONCE_MAX = 3000
REST = 0.01  # seconds between two checks on a kept connection
TIMEOUT = 20  # seconds for the last answers
body = options.body.encode()
CHECK = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
READY = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
FAILURES = {errno.ECONNREFUSED: "refused", errno.ECONNRESET: "reset", errno.EPIPE: "reset", 0: "closed"}

counts = dict.fromkeys(["asked", "answered", "allowed", "denied", "refused", "reset", "closed", "other", "waiting"], 0)
epoll = select.epoll()
clients = {}  # by descriptor
resting = collections.deque()  # kept ones, with the time to go on


class Client:
    def __init__(self, port, request, kept=False, counted=True):
        self.request, self.kept, self.counted = request, kept, counted
        self.got, self.state, self.status = b"", "connecting", None
        self.times = [time.monotonic()]  # of the connection, and of each request
        self.socket = socket.socket()
        self.socket.setblocking(False)
        # No connection of ours stays behind: there are more of them than ports.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.count("asked")
        clients[self.socket.fileno()] = self
        epoll.register(self.socket.fileno(), select.EPOLLOUT)
        error = self.socket.connect_ex(("127.0.0.1", port))
        if error not in (0, errno.EINPROGRESS):
            self.fail(error)

    def count(self, what):
        counts[what] += self.counted

    def fail(self, error):
        if self.state != "resting":  # then it is the server's right to close
            how = FAILURES.get(error, "other")
            self.count(how)
            ago = [round(time.monotonic() - then, 3) for then in self.times[:1] + self.times[-1:]]
            if self.counted:
                print(f"{how} {self.state} kept={self.kept} seconds since connect, request: {ago}", file=sys.stderr)
        self.status = self.status or -1
        self.close()

    def close(self):
        self.state = "over"
        del clients[self.socket.fileno()]
        self.socket.close()

    def send(self):
        self.socket.send(self.request)
        self.times.append(time.monotonic())
        self.state = "waiting"
        epoll.modify(self.socket.fileno(), select.EPOLLIN)

    def on_event(self):
        try:
            if self.state == "connecting":
                error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                return self.fail(error) if error else self.send()
            arrived = self.socket.recv(65536)
        except BlockingIOError:
            return None
        except OSError as error:
            return self.fail(error.errno)
        return self.take(arrived) if arrived else self.fail(0)

    def take(self, arrived):
        self.got += arrived
        head, found, rest = self.got.partition(b"\r\n\r\n")
        if not found or len(rest) < int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]):
            return
        self.status = int(head.split()[1])
        self.count("answered")
        self.count({200: "allowed", 429: "denied"}.get(self.status, "other"))
        if not self.kept or b"connection: close" in head.lower():
            return self.close()
        self.got, self.state = b"", "resting"
        resting.append((time.monotonic() + REST, self))

    def go_on(self):
        if self.state != "resting":
            return
        self.count("asked")
        try:
            self.send()
        except OSError as error:
            self.state = "waiting"
            self.fail(error.errno)


def serve(wait):
    for number, _ in epoll.poll(wait):
        if number in clients:
            clients[number].on_event()


start = now = time.monotonic()
end = start + options.seconds
opened, kept, probe, probe_at = 0, [], None, start
while now < end:
    if options.ready and now >= probe_at and (probe is None or probe.status):
        if probe is not None and probe.status == 503:
            end, options.ready = min(end, now + 0.5), 0
        probe, probe_at = Client(options.ready or options.port, READY, counted=False), now + 0.05
    kept = [client for client in kept if client.state != "over"]
    while len(kept) < options.keep:
        kept.append(Client(options.port, CHECK, kept=True))
    while opened < (now - start) * options.rate and len(clients) < AT_ONCE_MAX:
        Client(options.port, CHECK)
        opened += 1
    while resting and resting[0][0] <= now:
        resting.popleft()[1].go_on()
    serve(0.002)
    now = time.monotonic()

took = now - start
for client in kept:
    client.kept = False
    if client.state == "resting":
        client.close()
while clients and time.monotonic() < now + TIMEOUT:
    serve(0.1)
counts["waiting"] = sum(client.counted for client in clients.values())
failed = sum(counts[how] for how in ("refused", "reset", "closed", "other", "waiting"))
print(f"connections_a_second={int(opened / took)} answers_a_second={int(counts['answered'] / took)} failed={failed}",
      *(f"{name}={n}" for name, n in counts.items()))
