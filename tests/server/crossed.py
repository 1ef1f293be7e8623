"""Throws what belongs to one protocol, and what belongs to none, at every port: called by crossed.sh.

crossed.py SEED COUNT CORPUS PORT...

Messages of every protocol, files of the fuzz corpora and random bytes, each whole, cut, joined or with bits turned
over. The answer does not matter; that every connection ends in time does. Prints how many were sent.
"""
import os
import random
import socket
import sys
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("000000040000000000")
HEADERS = bytes.fromhex("0000010105000000018286840f")[:12]
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(200))
MESSAGES = [
    b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 32\r\n\r\n" + b'{"key":"k","limit":"100/minute"}',
    b"POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"key\r\n0\r\n\r\n",
    b"GET /auth/a?b HTTP/1.0\r\nX-Forwarded-Uri: /x\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
    b"*1\r\n$4\r\nPING\r\n",
    b"*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nu\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n",
    b"HELLO 3\r\nINFO\r\nCOMMAND\r\nWEIR.CHECK user 42\r\n",
    PREFACE + SETTINGS,
    PREFACE + SETTINGS + HEADERS,
    PREFACE + SETTINGS + bytes.fromhex("0000080600000000000000000000000000"),
    TLS_HELLO,
    b"EHLO example.org\r\n",
    b"\x00" * 64,
    b"\xff" * 64,
]


def corpus(folder):
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                yield file.read(65536)


def variant(rng, seeds):
    data = bytearray(rng.choice(seeds))
    kind = rng.randrange(8)
    if kind == 0:
        del data[rng.randrange(len(data) + 1):]
    elif kind == 1:
        data += rng.choice(seeds)
    elif kind == 2:
        for _ in range(rng.randrange(1, 8)):
            if data:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 3:
        data = rng.randbytes(rng.randrange(3000)) + rng.choice((b"", b"\r\n\r\n"))
    elif kind == 4:
        data = data * rng.randrange(1, 20)
    elif kind == 5:
        body = rng.randbytes(rng.randrange(3000))
        data = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    elif kind == 6:
        data = b"*3\r\n$11\r\nCL.THROTTLE\r\n%s\r\nQUIT\r\n" % rng.randbytes(rng.randrange(3000))
    return bytes(data[:65536])


def throw(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except (ConnectionResetError, BrokenPipeError):
            pass
        except OSError as error:
            if error.errno != 107:  # it has hung up already
                raise


def main():
    seed, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    ports = [int(port) for port in sys.argv[4:]]
    seeds = MESSAGES + sorted(corpus(folder))
    failures = []

    def work(number):
        rng = random.Random(seed * 1000 + number)
        try:
            for _ in range(count // 8):
                throw(rng.choice(ports), variant(rng, seeds))
        except Exception as error:  # reported by the main thread
            failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(failures[0] if failures else f"{count // 8 * 8} sent")
    sys.exit(1 if failures else 0)


main()
