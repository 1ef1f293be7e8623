"""Long pipelines when the server is stopped, for pipelines.sh: none of their requests is torn apart.

pipelines.py RESP_PORT HTTP_PORT PID        a stop while pipelines are on their way
"""
import os
import signal
import socket
import sys
import threading
import time

from resp_pipe import resp


def stop(resp_port, http_port, pid):
    """Some client keeps the loops busy while the signal and the pipelines arrive together."""
    pipeline = b"".join(resp("WEIR.CHECK", "user", "u%06d" % i, "path", "/x") for i in range(3000))
    clients = [socket.create_connection(("127.0.0.1", resp_port)) for _ in range(6)]
    busy = socket.create_connection(("127.0.0.1", http_port))
    item = b'{"user":"42","path":"/a/b","ip":"192.0.2.1"}'
    body = b"[" + b",".join([item] * 8000) + b"]"
    busy.sendall(b"POST /v1/checks HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    time.sleep(0.005)
    os.kill(pid, signal.SIGTERM)
    senders = [threading.Thread(target=quiet_send, args=(client, pipeline), daemon=True) for client in clients]
    for sender in senders:
        sender.start()
    for client in clients:
        client.settimeout(300)
        answers = bytearray()
        try:
            while piece := client.recv(1 << 20):
                answers += piece
        except (ConnectionResetError, TimeoutError):
            pass
        if b"-ERR" in answers:
            at = answers.index(b"-ERR")
            return f"a request was torn: {bytes(answers[at:at + 80])}"
    return "none was torn"


def quiet_send(client, data):
    try:
        client.sendall(data)
    except OSError:
        pass  # it has stopped


print(stop(*[int(argument) for argument in sys.argv[1:]]))
