"""Kills a server again and again while it answers as fast as it can, and compares its state with its answers.

For kills.sh.

kills.py PROGRAM STATE KILLS SEED

The table has a million used-up keys, and eight that are charged while the server is killed: limits of a calendar year
and day, windows, logs, buckets. For each the test counts the requests that were allowed and answered, and those in
flight when the server died. After the next start, what is used lies between these. Prints what was measured and
"failed: ..." lines.
"""
import bisect
import itertools
import os
import random
import re
import selectors
import socket
import statistics
import subprocess
import sys
import threading
import time

from resp_pipe import Pipe, resp

FILLERS = 1_000_000
CONNECTIONS, REQUESTS = 3, 20_000
# The calendar's day of a zone where it does not end within this hour.
ZONE = "UTC" if time.gmtime().tm_hour not in (23, 0) else "Asia/Tokyo"
QUOTAS = [
    ("900000/calendar_year", "fixed_window"),
    (f"900000/calendar_day {ZONE}", "fixed_window"),
    ("900000/month", "fixed_window"),
    ("100000/month", "sliding_window"),
    ("9000000/month", "sliding_window"),
    ("30000/month", "sliding_log"),
    ("900000/year", "token_bucket"),
    ("900000/year", "leaky_meter"),
]
ANSWER = re.compile(rb"\*\d+\r\n\$7\r\nallowed\r\n:(\d)\r\n")


def question(i, cost):
    quota, algorithm = QUOTAS[i]
    return resp("WEIR.LIMIT", f"hot:{i}", quota, "ALGORITHM", algorithm, "COST", cost)


QUESTIONS = [question(i, 1) for i in range(len(QUOTAS))]


class Server:
    def __init__(self, program, state):
        begun = time.monotonic()
        command = [program, "serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
                   "--admin", "127.0.0.1:0", "--shed-after", "0", "--state", state]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = 0
        for line in self.process.stdout:
            if line.startswith("resp "):
                self.port = int(line.rsplit(":", 1)[1])
            if line.startswith("ready"):
                break
        self.ready_after = time.monotonic() - begun
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            ticks = file.read().rsplit(")", 1)[1].split()[11:13]
        self.processor_time = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Client(threading.Thread):
    """Sends without waiting until the server is gone; knows what was sent and what was answered."""

    def __init__(self, port, order):
        super().__init__()
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.order = order  # the hot key of each request
        self.allowed, self.answers, self.in_flight = [0] * len(QUOTAS), 0, []

    def run(self):
        pieces = [QUESTIONS[i] for i in self.order]
        ends = list(itertools.accumulate(map(len, pieces)))
        blob, sent, rest = memoryview(b"".join(pieces)), 0, b""
        selector = selectors.DefaultSelector()
        selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        try:
            while self.answers < len(self.order):
                for _, events in selector.select(20):
                    if events & selectors.EVENT_WRITE and sent < len(blob):
                        sent += self.socket.send(blob[sent:sent + (1 << 16)])
                    if events & selectors.EVENT_READ:
                        data = self.socket.recv(1 << 16)
                        if not data:
                            raise ConnectionError
                        rest = self.take(rest + data)
        except OSError:
            pass
        self.in_flight = self.order[self.answers:bisect.bisect_left(ends, sent) + 1]

    def take(self, data):
        end = 0
        for answer in ANSWER.finditer(data):
            self.allowed[self.order[self.answers]] += answer[1] == b"1"
            self.answers += 1
            end = answer.end()
        return data[end:]


def used(port):
    """What each hot key has spent."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        all_used = []
        for i in range(len(QUOTAS)):
            connection.sendall(question(i, 0))
            answer = connection.recv(4096)
            limit, remaining = (int(re.search(rb"\r\n%s\r\n:(-?\d+)" % word, answer)[1])
                                for word in (b"limit", b"remaining"))
            all_used.append(limit - remaining)
    return all_used


def fillers(numbers):
    return b"".join(resp("CL.THROTTLE", "tenant:0042:route:v1:user:%011d" % i, 0, 1, 864000) for i in numbers)


def main(program, state, kills, seed):
    dice = random.Random(seed)
    server = Server(program, state)
    filling = [program, "bench", "--resp", f":{server.port}", "--each-key", "--keys", str(FILLERS), "--command",
               "CL.THROTTLE {key} 0 1 864000"]
    subprocess.run(filling, stdout=subprocess.DEVNULL, check=True, timeout=600)
    spent, ready, busy, answers, doubt, settled = used(server.port), [], [], 0, 0, 0
    for kill in range(kills):
        orders = [dice.choices(range(len(QUOTAS)), k=REQUESTS) for _ in range(CONNECTIONS)]
        clients = [Client(server.port, order) for order in orders]
        for client in clients:
            client.start()
        time.sleep(0.02 + dice.random() * 0.1)
        server.kill()
        for client in clients:
            client.join()
            client.socket.close()
        server = Server(program, state)
        ready.append(server.ready_after)
        busy.append(server.processor_time)
        after = used(server.port)
        for i, (quota, algorithm) in enumerate(QUOTAS):
            acked = sum(client.allowed[i] for client in clients)
            in_flight = sum(client.in_flight.count(i) for client in clients)
            least = spent[i] + acked
            # A window that slides and a bucket give back a little by themselves: less than a permit in ten seconds.
            if not least - 1 <= after[i] <= least + in_flight:
                print(f"failed: kill {kill}, {quota} {algorithm}: {after[i]} spent, told {least}, {in_flight} under way")
            doubt += in_flight
            settled += max(0, after[i] - least)
        answers += sum(client.answers for client in clients)
        spent = after
        sample = [dice.randrange(FILLERS) for _ in range(2000)]
        back, _, errors = Pipe(server.port).talk(fillers(sample), len(sample))
        if back or errors:
            print(f"failed: kill {kill}: of 2000 spent keys {back} came back, {errors} errors")
    server.kill()
    print(f"{kills} kills, {answers} answers, {doubt} requests under way of which {settled} had counted")
    print(f"ready with a million keys after a median of {statistics.median(ready):.3f} s, at most {max(ready):.3f} s; "
          f"processor time {statistics.median(busy):.3f} s, at most {max(busy):.3f} s")
    if answers < 50 * kills:
        print("failed: hardly anything was under way")
    print(f"ready_max={max(ready):.3f}\nbusy_max={max(busy):.3f}")


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
