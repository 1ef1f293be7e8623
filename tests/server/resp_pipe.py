"""Many commands to a RESP port, and the count of what came back: for the tests of floods and of kills.

A Pipe sends while it reads, so that neither side waits for the other, and counts answers of CL.THROTTLE, which are five
numbers, the first of them 0 or 1: how many allowed, denied, or were errors. Used by hash_flood.py and kills.py.
"""
import re
import selectors
import socket

ANSWER = re.compile(rb"\*5\r\n:(\d)\r\n(?::-?\d+\r\n){4}|-[^\r]*\r\n")


def resp(*words):
    texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)


class Pipe:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.verdicts = []  # of the last talk, in order: b"0", b"1", or b"" for an error
        self.rest = b""

    def take(self, data):
        """Notes the answers that are whole, and returns how many."""
        data, end, before = self.rest + data, 0, len(self.verdicts)
        for answer in ANSWER.finditer(data):
            self.verdicts.append(answer[1] or b"")
            end = answer.end()
        self.rest = data[end:]
        return len(self.verdicts) - before

    def talk(self, blob, count):
        """Sends it all and reads so many answers. Returns (allowed, denied, errors) of these."""
        self.verdicts = []
        self.socket.settimeout(60)
        selector = selectors.DefaultSelector()
        selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        view, sent, got = memoryview(blob), 0, 0
        while got < count:
            ready = selector.select(60)
            if not ready:
                raise TimeoutError(f"{got} of {count} answers after a minute")
            events = ready[0][1]
            if events & selectors.EVENT_READ:
                piece = self.socket.recv(1 << 18)
                if not piece:
                    raise ConnectionError(f"closed after {got} of {count} answers")
                got += self.take(piece)
            if events & selectors.EVENT_WRITE:
                sent += self.socket.send(view[sent:sent + (1 << 16)])
                if sent == len(blob):
                    selector.modify(self.socket, selectors.EVENT_READ)
        selector.close()
        return tuple(self.verdicts.count(verdict) for verdict in (b"0", b"1", b""))
