"""Clients that take their time, their descriptors or their memory: called by attack_sockets.sh.

attack_sockets.py slow COUNT HTTP GRPC RESP     sockets of each protocol that send a byte now and then
attack_sockets.py unread COUNT RESP             clients that ask a million times and read nothing
attack_sockets.py crowd COUNT PID RESP ADMIN    more connections than the server has descriptors
attack_sockets.py idle COUNT HTTP RESP          idle connections, until a line comes on standard input
attack_sockets.py leave COUNT PID RESP          connections that are reset at once

Each prints what happened as NAME=VALUE, one in a line.
"""
import os
import resource
import selectors
import socket
import struct
import sys
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
GRPC_HEAD = PREFACE + bytes.fromhex("0000400104000000018386") + 60 * b"\x00"
BEGUN = {  # requests that never end
    "http": b"POST /v1/check HTTP/1.1\r\nHost: x\r\nX-Slow: " + 60 * b"x",
    "grpc": GRPC_HEAD,
    "resp": b"*5\r\n$11\r\nCL.THROTTLE\r\n$60\r\n" + 60 * b"x",
}


def tell(**values):
    for name, value in values.items():
        print(f"{name}={value:.3f}" if isinstance(value, float) else f"{name}={value}", flush=True)


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def ask(client):
    client.sendall(b"PING\r\n")
    return client.recv(100) == b"+PONG\r\n"


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Slow:
    def __init__(self, kind, port):
        self.kind, self.socket, self.sent = kind, connect(port), 1
        self.socket.setblocking(False)
        self.socket.send(BEGUN[kind][:1])
        self.began = time.monotonic()


def slow(count, http, grpc, resp):
    clients = [Slow(kind, port) for _ in range(count) for kind, port in
               (("http", http), ("grpc", grpc), ("resp", resp))]
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, client)
    tell(opened=len(clients))
    longest, last = {"http": 0.0, "grpc": 0.0, "resp": 0.0}, time.monotonic()
    left = len(clients)
    while left > 0 and time.monotonic() < clients[-1].began + 60:
        for key, _ in selector.select(0.05):
            client = key.data
            try:
                if client.socket.recv(65536):
                    continue  # the last words
            except OSError:
                pass
            longest[client.kind] = max(longest[client.kind], time.monotonic() - client.began)
            selector.unregister(client.socket)
            client.socket.close()
            left -= 1
        if time.monotonic() - last < 0.7:
            continue
        last = time.monotonic()
        for key in list(selector.get_map().values()):
            client = key.data
            try:
                client.sent += client.socket.send(BEGUN[client.kind][client.sent:client.sent + 1])
            except OSError:
                pass
    tell(left=left)
    tell(**{kind: seconds for kind, seconds in longest.items()})


def unread(count, resp):
    commands = 1_000_000 * b"INFO\r\n"
    clients = []
    for _ in range(count):
        client = connect(resp)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        clients.append([client, 0])
    cut, end, began = 0, time.monotonic() + 300, time.monotonic()
    while cut < count and time.monotonic() < end:
        for one in clients:
            if one[0] is None:
                continue
            try:
                one[1] += one[0].send(commands[one[1]:one[1] + 65536])
            except BlockingIOError:
                pass
            except OSError:
                one[0].close()
                one[0] = None
                cut += 1
        time.sleep(0.005)
    tell(cut=cut, seconds=time.monotonic() - began, most_sent=max(sent for _, sent in clients))


def crowd(count, pid, resp, admin):
    first = connect(resp)
    assert ask(first)
    others = []
    for _ in range(count):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", resp))
        others.append(one)
    time.sleep(0.5)
    before, began, served = processor_seconds(pid), time.monotonic(), 0
    while time.monotonic() < began + 2:
        served += ask(first)
        time.sleep(0.1)
    tell(served=served, percent=100 * (processor_seconds(pid) - before) / (time.monotonic() - began))
    with connect(admin) as doctor:
        doctor.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        tell(admin=int(doctor.recv(100).startswith(b"HTTP/1.1 200")))
    for one in others:
        one.close()
    began = time.monotonic()
    tell(again=int(ask(connect(resp))), again_seconds=time.monotonic() - began)


def idle(count, http, resp):
    clients = []
    for i in range(count):
        client = connect(resp if i % 2 == 0 else http)
        client.sendall(b"PING\r\n" if i % 2 == 0 else b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        clients.append(client)
    served = sum(len(client.recv(1000)) > 0 for client in clients)
    tell(served=served)
    sys.stdin.readline()
    open_still = 0
    for client in clients:
        client.setblocking(False)
        try:
            open_still += len(client.recv(1)) > 0
        except BlockingIOError:
            open_still += 1
    tell(open=open_still)


def leave(count, pid, resp):
    def descriptors():
        return len(os.listdir(f"/proc/{pid}/fd"))
    before = descriptors()
    at_once = struct.pack("ii", 1, 0)
    for _ in range(count):
        client = connect(resp)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        client.close()
    began = time.monotonic()
    tell(answered=int(ask(connect(resp))))
    while descriptors() > before + 1 and time.monotonic() < began + 60:
        time.sleep(0.01)
    tell(back_seconds=time.monotonic() - began, more=descriptors() - before)


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    {"slow": slow, "unread": unread, "crowd": crowd, "idle": idle, "leave": leave}[sys.argv[1]](
        *(int(argument) for argument in sys.argv[2:]))
