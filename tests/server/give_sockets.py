"""Starts a program as systemd would, with sockets: give_sockets.py NAME=KIND... -- PROGRAM ARGUMENTS...

KIND is tcp (listening on a free port of 127.0.0.1), all (of 0.0.0.0), unix:PATH, udp, deaf (a stream that does not
listen) or file. A NAME of - gives none of the names. Prints `NAME PORT` for each that has one, on stderr.
"""
import os
import socket
import sys

split = sys.argv.index("--")
given, names = [], []
for argument in sys.argv[1:split]:
    name, kind = argument.split("=", 1)
    names.append(name)
    if kind == "file":
        given.append(os.open("/dev/null", os.O_RDONLY))
        continue
    family = socket.AF_UNIX if kind.startswith("unix:") else socket.AF_INET
    one = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    if family == socket.AF_INET:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        again = next((s for n, s in zip(names, given) if n == name and isinstance(s, socket.socket)), None)
        one.bind(("0.0.0.0" if kind == "all" else "127.0.0.1", again.getsockname()[1] if again else 0))
        print(name, one.getsockname()[1], file=sys.stderr, flush=True)
    else:
        one.bind(kind[5:])
    if kind not in ("udp", "deaf"):
        one.listen(100)
    given.append(one)

numbers = [os.dup2(one if isinstance(one, int) else one.fileno(), 100 + i) for i, one in enumerate(given)]
for i, number in enumerate(numbers):
    os.dup2(number, 3 + i, inheritable=True)
os.environ["LISTEN_PID"] = str(os.getpid())
os.environ["LISTEN_FDS"] = str(len(given))
if "-" not in names:
    os.environ["LISTEN_FDNAMES"] = ":".join(names)
os.execv(sys.argv[split + 1], sys.argv[split + 1:])
