"""Says the same over TLS as a client may say in the plain, much at once: called by tls.sh.

tls_equal.py CA HTTP_PORT RESP_PORT

What must come back is known beforehand, byte by byte; one client takes its answers only after it has sent everything
that it can. Prints "equal" or what was not.
"""
import http.client
import json
import socket
import ssl
import sys
import time

context = ssl.create_default_context(cafile=sys.argv[1])
http_port, resp_port = int(sys.argv[2]), int(sys.argv[3])


def connect(port):
    plain = socket.create_connection(("127.0.0.1", port), timeout=30)
    return context.wrap_socket(plain, server_hostname="localhost")


def read(connection, size):
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(65536)
        if not part:
            break
        parts += part
    return bytes(parts)


def pings(late):
    count = 20_000
    words = [f"word-{i}".encode() for i in range(count)]
    request = b"".join(b"*2\r\n$4\r\nPING\r\n$%d\r\n%s\r\n" % (len(word), word) for word in words)
    wanted = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    with connect(resp_port) as connection:
        connection.sendall(request)  # the answers find room; one TLS connection is not for two threads at once
        if late:
            time.sleep(1)
        return read(connection, len(wanted)) == wanted


def large():
    word = b"x" * 900_000
    with connect(resp_port) as connection:
        connection.sendall(b"*2\r\n$4\r\nPING\r\n$%d\r\n%s\r\n" % (len(word), word))
        wanted = b"$%d\r\n%s\r\n" % (len(word), word)
        return read(connection, len(wanted)) == wanted


def checks():
    body = json.dumps({"checks": [{"key": f"tls:{i}", "limit": "10/minute"} for i in range(10_000)]})
    connection = http.client.HTTPSConnection("127.0.0.1", http_port, timeout=30, context=context)
    connection.request("POST", "/v1/checks", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answers = json.loads(answer.read())["answers"]
    return answer.status == 200 and len(answers) == 10_000 and all(result["remaining"] == 9 for result in answers)


def small_pieces():
    with connect(resp_port) as connection:
        for byte in b"PING\r\n":
            connection.sendall(bytes([byte]))
        return read(connection, 7) == b"+PONG\r\n"


for name, is_equal in [("pings", pings(False)), ("pings, late", pings(True)), ("large", large()), ("checks", checks()),
                       ("small pieces", small_pieces())]:
    if not is_equal:
        sys.exit(f"not equal: {name}")
print("equal")
