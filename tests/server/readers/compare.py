# Generates spellings of paths, lets real gateways and libraries read them, and asks Weir about each: whatever a server
# reads as /api/login must be charged to the rule `login`, or denied because its path is ambiguous.
#
#   python3 compare.py WEIR_PORT COUNT SEED [gateway NAME PORT]... [reader NAME COMMAND...]...   (each one argument)
import http.client
import json
import random
import shlex
import socket
import subprocess
import sys

KNOWN = [
    "/api/login", "/health#/../api/login", "//static/api/login", "//x/api/login", "/api/x//../../login",
    "/api/x/;/../../login", "/x\\y/../api/login", "/api/%5c/../login", "/api/search/shoes\\..\\..\\..\\static",
    "/api/login#", "/api/login;x=1", "/api;x=1/login", "/%61pi/login", "/api%2flogin", "/x/..%2fapi/login",
    "/x/%2e%2e/api/login", "/static/..;/api/login", "/api\\login", "/\\x/api/login", "///x/api/login",
    "/api/./login", "/./api/login", "/api//login", "/api/login/", "/api/login%00", "/api/login%00.css", "/api%c0%aflogin",
    "/%c0%ae%c0%ae/api/login", "/api/login?x#y", "/api/login#?x", "/..//api/login", "/x%2f..%2fapi%2flogin",
    "//x/../x//../api/%2f../login/", "/api/x\\y/../z\\..\\login", "/x/..//y/api/login", "/api/login/./..",
    "/api/q//x\\\\..\\..\\..\\login", "/api%%32flogin", "/%%361pi/login", "/api%252flogin", "/api/x/%%32e%2e/login",
    "/api/login\xa0", "/api/login\x85", "/api/login%20", "/api/login%a0", "/api/login%0c", "/api/login/..;/..;", "x:/api/login",
    "http:/api/login", "http:///x/api/login", "http:////x//../api/login",
]
SLASHES = ["/", "/", "/", "/", "//", "\\", "%2f", "%5c", "/./", "/;/", "/%2e/", "%c0%af", "/x/../", "/x//../", "/x\\../",
           "/;x/../", "/x%2f../", "/x/%2e%2e/", "/x/..;/", "/x/.%2e/", "//../", "/%2f../", "/%5c../", "/#/../", "/x#/../",
           "/x/./../", "\\x\\..\\", "/x\\y/../", "%%32f", "%252f"]
STARTS = [""] * 6 + ["//x", "/x/..", "/\\x", "/health#/..", "//x/..", "/static/..;", "///x", "/%2f..", "http://h", "/;", "http:///x", "http:", "x:"]
ENDS = [""] * 6 + ["/", ";", ";x=1", "#", "#/x", "%00", "?x=1", "?x=#", "/.", "/x/..", "%23", "%3f", "%3b", "/%2e", "\\", "%2f",
                     "\xa0", "\x85", "%a0", "%20", "%09", "/..;/..;", ";x/..;y"]


def spelling(dice):
    def word(text):
        return "".join(f"%{ord(c):02x}" if dice.random() < 0.04 else c.upper() if dice.random() < 0.02 else c for c in text)

    return dice.choice(STARTS) + dice.choice(SLASHES) + word("api") + dice.choice(SLASHES) + word("login") + dice.choice(ENDS)


class Gateway:
    """Sends targets as they are, and finds out what reaches the application behind."""

    def __init__(self, port):
        self.port, self.socket = port, None

    def forwarded(self, target):
        for _ in range(2):
            try:
                if self.socket is None:
                    self.socket = socket.create_connection(("127.0.0.1", self.port), 60)
                self.socket.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: h\r\n\r\n")
                answer = http.client.HTTPResponse(self.socket)
                answer.begin()
                body = answer.read()
                if answer.will_close:
                    self.close()
                return bytes.fromhex(body.decode()) if answer.getheader("X-Echo") else None
            except (OSError, http.client.HTTPException):
                self.close()
        return None

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = None


def read_by(command, targets):
    """For each target, what a library makes of it: [(name, path)]."""
    lines = subprocess.run(shlex.split(command), input="".join(t.hex() + "\n" for t in targets), capture_output=True,
                          text=True, check=True).stdout.split("\n")
    return [[(n, bytes.fromhex(p)) for n, _, p in (one.partition("=") for one in line.split())] for line in lines[:len(targets)]]


def charged(port, targets):
    """Whether Weir charges each to the rule `login`; `ambiguous` if it denies it for its path."""
    out = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for i in range(0, len(targets), 50):
        # JSON has bytes of UTF-8 only: what else is sent is a dot here, and is asked about as a gateway does.
        batch = targets[i:i + 50]
        checks = [{"path": t.decode() if t.isascii() else ".", "ip": "192.0.2.1"} for t in batch]
        connection.request("POST", "/v1/checks", json.dumps({"checks": checks}))
        for t, one in zip(batch, json.loads(connection.getresponse().read())["answers"]):
            if not t.isascii():
                one = forward_auth(connection, t)
            rules = {limit["rule"] for limit in one.get("limits", [])}
            out.append("ambiguous" if one.get("reason") == "ambiguous_path" else "login" in rules)
    return out


def forward_auth(connection, target):
    """What Weir answers a gateway, in the form of /v1/checks as far as it is looked at."""
    connection.putrequest("GET", "/auth")
    connection.putheader("X-Forwarded-Uri", target)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        return json.loads(body)
    policies = answer.getheader("RateLimit-Policy", "").split(",")
    return {"limits": [{"rule": policy.strip().split(":")[0].strip('"')} for policy in policies]}


def main():
    port, count, seed = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    dice = random.Random(seed)
    targets = list(dict.fromkeys([t.encode("latin-1") for t in KNOWN] + [spelling(dice).encode("latin-1") for _ in range(count)]))
    gateways, readers = {"": None}, {}
    for argument in sys.argv[4:]:
        kind, name, rest = argument.split(" ", 2)
        if kind == "gateway":
            gateways[name] = Gateway(int(rest))
        else:
            readers[name] = rest
    is_charged = charged(port, targets)
    print(f"      WEIR_SEED={seed}: {len(targets)} spellings, {is_charged.count('ambiguous')} of them ambiguous")
    forwarded = {name: [t if gateway is None else gateway.forwarded(t) for t in targets] for name, gateway in gateways.items()}
    # Each reader starts once and reads everything: starting one takes longer than reading.
    seen = list(dict.fromkeys(t for behind in forwarded.values() for t in behind if t is not None))
    served_by = {t: ["as it is"] if t == b"/api/login" else [] for t in seen}
    for reader, command in readers.items():
        for t, found in zip(seen, read_by(command, seen)):
            served_by[t] += [f"{reader} {name}" for name, path in found if path.lower() in (b"/api/login", b"/api/login/")]
    failures = 0
    for gateway, behind in forwarded.items():
        passed = [i for i, t in enumerate(behind) if t is not None]
        served = {i: served_by[behind[i]] for i in passed if served_by[behind[i]]}
        escaped = [i for i in served if not is_charged[i]]
        print(f"      {gateway or 'no gateway'}: {len(passed)} of {len(targets)} forwarded, "
              f"{len(served)} served as /api/login, {len(escaped)} of them not charged")
        for i in escaped[:5]:
            print(f"FAIL  {targets[i].decode('latin-1')!r} passed on as {behind[i].decode('latin-1')}: {', '.join(served[i])}")
        failures += len(escaped)
        if not served:
            print(f"FAIL  {gateway or 'no gateway'}: no reader serves /api/login, so this shows nothing")
            failures += 1
    sys.exit(1 if failures else 0)


main()
