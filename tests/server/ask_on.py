"""A client that sends one check after the other while others put the server under load: called by overload_long.sh.

ask_on.py PORT SECONDS

Eight connections, fifty checks a second on each; one that is turned away or ended comes again. Prints how many were
decided and how many were shed, and the slowest hundredth of those that were decided, in milliseconds, as NAME=VALUE.
"""
import select
import socket
import sys
import time

BODY = b'{"key":"asker","limit":"1000000/s"}'
CHECK = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
REST = 0.02


class Client:
    def fileno(self):
        return self.socket.fileno()

    def __init__(self, port, first):
        self.port, self.next, self.asked, self.socket = port, first, None, None
        self.connect()

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self):
        self.asked = time.monotonic()
        try:
            self.socket.sendall(CHECK)
        except OSError:
            pass  # it was turned away; answer() sees that

    def answer(self):
        """The seconds that it took, or None if it was not decided."""
        try:
            answer = self.socket.recv(65536)
        except ConnectionResetError:
            answer = b""
        took, self.asked, self.next = time.monotonic() - (self.asked or 0), None, time.monotonic() + REST
        if not answer or b"connection: close" in answer.lower():
            self.socket.close()
            self.connect()
        return took if answer and b" 503 " not in answer[:20] else None


def main(port, seconds):
    start = time.monotonic()
    clients = [Client(port, start + i * REST / 8) for i in range(8)]
    decided, shed = [], 0
    while time.monotonic() < start + seconds:
        for client in clients:
            if client.asked is None and client.next <= time.monotonic():
                client.ask()
        for client in select.select([client for client in clients if client.asked], [], [], 0.001)[0]:
            took = client.answer()
            if took is None:
                shed += 1
            else:
                decided.append(took)
    decided.sort()
    p99 = 1000 * decided[len(decided) * 99 // 100] if decided else -1
    print(f"decided={len(decided)} shed={shed} p99_ms={p99:.1f}")


main(int(sys.argv[1]), float(sys.argv[2]))
