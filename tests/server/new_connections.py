"""Load for drain.sh and upgrade.sh: new HTTP connections at a rate, one check on each, beside some that are kept.

new_connections.py PORT RATE SECONDS BODY [--keep N] [--ready PORT]

Every connection that fails is counted by how it failed; the last line tells all counts. Kept connections ask one
check after the other and make a new connection when the server says that this one ends. With --ready it does as a
load balancer does: it asks /readyz there, and half a second after a 503 it opens no more connections.
"""
import argparse
import errno
import select
import socket
import struct
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
PATIENCE = 20  # seconds for the last answers
body = options.body.encode()
CHECK = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
READY = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

counts = dict.fromkeys(["asked", "answered", "allowed", "denied", "refused", "reset", "closed", "other", "waiting"], 0)
epoll = select.epoll()
open_ones = {}


class Client:
    def __init__(self, port, request, kept=False, counted=True):
        self.request, self.kept, self.counted = request, kept, counted
        self.got, self.sent, self.status, self.is_last = b"", False, None, False
        self.socket = socket.socket()
        self.socket.setblocking(False)
        # No connection of ours stays behind: there are more of them than ports.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if counted:
            counts["asked"] += 1
        error = self.socket.connect_ex(("127.0.0.1", port))
        if error not in (0, errno.EINPROGRESS):
            self.fail(error)
            return
        open_ones[self.socket.fileno()] = self
        epoll.register(self.socket.fileno(), select.EPOLLOUT)

    def fail(self, error):
        how = {errno.ECONNREFUSED: "refused", errno.ECONNRESET: "reset", errno.EPIPE: "reset", None: "closed"}
        self.end(how.get(error, "other"))

    def end(self, how):
        if self.counted:
            counts[how] += 1
        self.status = self.status or how
        open_ones.pop(self.socket.fileno(), None)
        self.socket.close()

    def on_event(self):
        try:
            if not self.sent:
                error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    return self.fail(error)
                self.socket.send(self.request)
                self.sent = True
                epoll.modify(self.socket.fileno(), select.EPOLLIN)
                return
            bytes_read = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError as error:
            return self.fail(error.errno)
        if not bytes_read:
            return self.fail(None)
        self.got += bytes_read
        head, found, rest = self.got.partition(b"\r\n\r\n")
        if not found:
            return
        size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(rest) < size:
            return
        self.status = int(head.split()[1])
        self.is_last = b"connection: close" in head.lower()
        if not self.counted:
            return self.end("answered")
        counts["allowed" if self.status == 200 else "denied" if self.status == 429 else "other"] += 1
        if not self.kept or self.is_last:
            return self.end("answered")
        counts["answered"] += 1
        counts["asked"] += 1
        self.got, self.sent = b"", False
        epoll.modify(self.socket.fileno(), select.EPOLLOUT)


start = now = time.monotonic()
end = start + options.seconds
opened, kept, probe, probe_at, unready = 0, [], None, start, None
while now < end:
    if options.ready and now >= probe_at and (probe is None or probe.status):
        if probe is not None and probe.status == 503 and unready is None:
            unready = now
            end = min(end, now + 0.5)
        probe, probe_at = Client(options.ready, READY, counted=False), now + 0.05
    kept = [client for client in kept if client.socket.fileno() >= 0]
    while len(kept) < options.keep:
        kept.append(Client(options.port, CHECK, kept=True))
    while opened < (now - start) * options.rate and len(open_ones) < AT_ONCE_MAX:
        Client(options.port, CHECK)
        opened += 1
    for number, _ in epoll.poll(0.002):
        client = open_ones.get(number)
        if client is not None:
            client.on_event()
    now = time.monotonic()

took = now - start
for client in kept:
    client.kept = False
while open_ones and time.monotonic() < now + PATIENCE:
    for number, _ in epoll.poll(0.1):
        client = open_ones.get(number)
        if client is not None:
            client.on_event()
counts["waiting"] = sum(client.counted for client in open_ones.values())
failed = sum(counts[how] for how in ("refused", "reset", "closed", "other", "waiting"))
print(f"rate={int(counts['asked'] / took)} failed={failed}", *(f"{name}={n}" for name, n in counts.items()))
