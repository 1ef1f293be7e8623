"""Sends the same requests to envoyproxy/ratelimit and Weir, and compares the answers. For envoy_reference.sh.

envoy_reference.py write FOLDER SEED DOMAINS january|july|rules    random files, one a domain
envoy_reference.py ask SEED DOMAINS january|july|rules WEIR [REFERENCE REDIS] [--counting] [--spoil WHAT FIRST]

WEIR, REFERENCE and REDIS are ports. Without the last two, Weir is compared with the model alone; with `rules`, with the
model of imported files. Each answer must be that of the model, whole: status, codes, limits, what remains, and when
the window ends. Weir charges nothing for a denied request, so before each request the counters in Redis are set to what
Weir should have counted. Both services are queried within one second. If a window ends between the two, the rest of
that domain is left out; only few domains may be.

With --counting, Weir charges denied requests, too, and the reference keeps its counters. --spoil changes one answer of
Weir, and the comparison must notice it; it uses the domains from FIRST on. Prints "failed: ..." lines and exits with 1.
"""
import collections
import json
import random
import socket
import sys
import time

from envoy_configs import make_domain, make_request, to_yaml
from envoy_model import SECONDS, Charge, Counting, Found, January, July, Rules, Weir

REQUESTS, ROUNDS = 5, 22  # a domain's different requests, and how often one of them is asked
KINDS = ["denied", "shadow over", "quota over", "quota denied", "unlimited", "no limit", "replaced", "wildcard",
         "shared", "override", "asked only", "several hits", "unknown domain", "zero limit"]

KINDS_BEYOND_RULES = ["quota over", "quota denied", "replaced", "override", "asked only"]


def name_of(index):
    return f"domain-{index}"


def domain_of(seed, index, generation):
    return make_domain(random.Random(f"{seed}/{index}"), generation.files, name_of(index))


class Http:
    """Posts to /json over one connection."""

    def __init__(self, port):
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, body):
        self.socket.sendall(b"POST /json HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
                            b"%d\r\n\r\n%s" % (len(body), body))
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.more()
        head, _, rest = data.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(rest) < int(fields[b"content-length"]):
            rest += self.more()
        return int(head.split()[1]), rest

    def more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise ConnectionError(f"port {self.port} hung up")
        return piece


class Redis:
    """Sets counters, and reads them."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def set(self, counts):
        commands = [(b"SET", key.encode(), b"%d" % count) if count else (b"DEL", key.encode())
                    for key, count in counts.items()]
        for _ in self.talk(commands):
            pass

    def get(self, keys):
        return {key: int(count or 0) for key, count in zip(keys, self.talk([(b"GET", key.encode()) for key in keys]))}

    def talk(self, commands):
        self.socket.sendall(b"".join(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                                                      for word in words) for words in commands))
        for _ in commands:
            line = self.file.readline()
            if line[:1] != b"$":
                yield None
            else:
                yield None if line == b"$-1\r\n" else self.file.read(int(line[1:]) + 2)[:-2]


def normal(answer):
    """Status and body as one value, without what is another's business: headers, bodies and metadata for clients."""
    status, body = answer
    if status not in (200, 429):
        return {"status": status}
    read = json.loads(body)
    statuses = []
    for one in read.get("statuses", []):
        limit = one.get("currentLimit")
        if limit is not None:
            limit = {"requestsPerUnit": limit.get("requestsPerUnit", 0), "unit": limit.get("unit", ""),
                     "name": limit.get("name", "")}
        statuses.append({"code": one.get("code"), "currentLimit": limit,
                         "limitRemaining": one.get("limitRemaining", 0),
                         "durationUntilReset": int(one.get("durationUntilReset", "0s").removesuffix("s"))})
    return {"status": status, "code": read.get("overallCode"), "statuses": statuses}


def expected(answer):
    return {"status": 429 if answer.code == "OVER_LIMIT" else 200, "code": answer.code,
            "statuses": [{"code": one["code"], "currentLimit": one.get("currentLimit"),
                          "limitRemaining": one.get("limitRemaining", 0),
                          "durationUntilReset": one.get("durationUntilReset", 0)} for one in answer.statuses]}


def codes_of(answer):
    return answer["status"], answer.get("code"), [one["code"] for one in answer.get("statuses", [])]


def spoil(answer, what):
    """A wrong answer, as a mistake in Weir would make it; None if there is nothing to change."""
    limited = [one for one in answer.get("statuses", []) if one["currentLimit"]]
    if what == "status":
        answer["status"] = 629 - answer["status"]
    elif what == "overall":
        answer["code"] = "OK" if answer["code"] == "OVER_LIMIT" else "OVER_LIMIT"
    elif not limited:
        return None
    elif what == "code":
        limited[0]["code"] = "OK" if limited[0]["code"] == "OVER_LIMIT" else "OVER_LIMIT"
    elif what == "limit":
        limited[0]["currentLimit"]["requestsPerUnit"] += 1
    elif what == "unit":
        limited[0]["currentLimit"]["unit"] = "UNKNOWN"
    elif what == "name":
        limited[0]["currentLimit"]["name"] += "x"
    elif what == "remaining":
        limited[0]["limitRemaining"] += 1
    elif what == "reset":
        limited[0]["durationUntilReset"] += 1
    elif what == "missing":
        answer["statuses"].pop()
    else:
        raise ValueError(what)
    return answer


class Comparison:
    def __init__(self, seed, generation, model, ports, to_spoil):
        self.seed, self.generation, self.model, self.to_spoil = seed, generation, model, to_spoil
        weir, reference, redis = ports
        self.weir = Http(weir) if weir else None
        self.reference = Http(reference) if reference else None
        self.redis = Redis(redis) if redis else None
        self.seen, self.failed = collections.Counter(), 0

    def fail(self, text):
        self.failed += 1
        print("failed:", text)

    def run(self, first, domains):
        for index in range(first, first + domains):
            self.ask_domain(index)
            if self.failed >= 5:
                return

    def ask_domain(self, index):
        domain = domain_of(self.seed, index, self.generation)
        rng = random.Random(f"{self.seed}/{index}/requests")
        requests = [make_request(rng, self.generation.files, domain) for _ in range(REQUESTS)]
        counts, reference_counts, failed = {}, {}, self.failed
        self.seen["domains"] += 1
        for _ in range(ROUNDS):
            if not self.ask(domain, rng.choice(requests), counts, reference_counts):
                self.seen["domains left out"] += 1
                return
            if self.failed > failed:
                return

    def ask(self, domain, request, counts, reference_counts):
        """Whether the domain can go on."""
        known = domain if request["domain"] == domain["domain"] else None
        while time.time() % 1 > 0.97:
            time.sleep(0.005)
        now = int(time.time())
        charges = self.model.charges(known, request, now)
        if charges is None:
            self.seen["left out: one counter twice in a request"] += 1
            return True
        real = [charge for charge in charges if isinstance(charge, Charge)]
        if len({charge.redis_key for charge in real}) < len({charge.counter for charge in real}):
            self.seen["left out: two counters by one name in Redis"] += 1
            return True
        body = json.dumps(request).encode()
        by_weir = self.heard(self.weir.post(body)) if self.weir else expected(self.model.answer(charges, counts, now))
        by_reference = self.ask_reference(real, reference_counts, body)
        units = {charge.found.unit for charge in real}
        then = int(time.time())
        if any(now // SECONDS[unit] != then // SECONDS[unit] for unit in units):
            return False
        ideal = self.model.answer(charges, counts, now)
        if self.to_spoil and by_weir != (spoiled := spoil(json.loads(json.dumps(by_weir)), self.to_spoil)) and spoiled:
            by_weir, self.to_spoil = spoiled, None
        self.compare("weir", by_weir, ideal, request, counts, then != now)
        if self.reference:
            told = self.generation.answer(self.generation.charges(known, request, now), reference_counts, now)
            self.compare("reference", by_reference, told, request, reference_counts, then != now)
            if by_weir == by_reference:
                self.seen["answers equal"] += 1
            elif codes_of(by_weir) == codes_of(by_reference):
                self.seen["answers that differ as listed, not in a code"] += 1
            else:
                self.seen["answers that differ as listed, in a code"] += 1
        self.note(known, request, charges, ideal)
        self.model.settle(charges, ideal, counts, reference_counts)
        return True

    def heard(self, answer):
        read = normal(answer)
        if isinstance(self.model, Rules):
            for limit in filter(None, (one["currentLimit"] for one in read.get("statuses", []))):
                limit["name"] = ""
        return read

    def ask_reference(self, charges, counts, body):
        if not self.reference:
            return None
        if charges:
            self.redis.set({charge.redis_key: counts.get(charge.counter, 0) for charge in charges})
        return normal(self.reference.post(body))

    def compare(self, who, got, answer, request, counts, second_passed):
        wanted = expected(answer)
        self.seen[f"answers of {who}"] += 1
        if second_passed:
            for side in (got, wanted):
                for one in side.get("statuses", []):
                    one["durationUntilReset"] = 0
        if got != wanted:
            self.fail(f"{who} answers otherwise\n  asked:    {json.dumps(request, ensure_ascii=False)}\n"
                      f"  spent:    {counts}\n  expected: {json.dumps(wanted)}\n  got:      {json.dumps(got)}")

    def note(self, domain, request, charges, answer):
        """What kinds of cases there were: a run without one of them has shown too little."""
        seen = self.seen
        seen["denied"] += answer.code == "OVER_LIMIT"
        seen["unknown domain"] += domain is None
        quotas = [status["code"] for charge, status in zip(charges, answer.statuses)
                  if isinstance(charge, Charge) and charge.found.quota]
        seen["quota over"] += "OVER_LIMIT" in quotas and answer.code == "OK"
        seen["quota denied"] += bool(quotas) and set(quotas) == {"OVER_LIMIT"} and answer.code == "OVER_LIMIT"
        for descriptor, charge, status in zip(request["descriptors"], charges, answer.statuses):
            seen["unlimited"] += isinstance(charge, Found)
            seen["no limit"] += charge is None
            seen["override"] += "limit" in descriptor and domain is not None
            if domain is not None and charge is None:
                seen["replaced"] += July().charges(domain, request | {"descriptors": [descriptor]}, 0)[0] is not None
            if not isinstance(charge, Charge):
                continue
            plain = tuple(entry.get("value", "") for entry in descriptor["entries"])
            seen["shared"] += charge.found.values != plain
            seen["wildcard"] += charge.found.by_wildcard
            seen["shadow over"] += charge.found.shadow and status.get("limitRemaining", 0) == 0
            seen["asked only"] += charge.hits == 0
            seen["several hits"] += charge.hits > 1
            seen["zero limit"] += charge.found.per_unit == 0

    def report(self, domains):
        print(", ".join(f"{count} {what}" for what, count in sorted(self.seen.items())))
        beyond_rules = KINDS_BEYOND_RULES if isinstance(self.model, Rules) else []
        missed = [kind for kind in KINDS if self.seen[kind] == 0 and kind not in beyond_rules]
        if domains >= 100 and missed:
            self.fail("these kinds never came up: " + ", ".join(missed))
        if self.seen["domains left out"] * 5 > domains:
            self.fail(f"{self.seen['domains left out']} of {domains} domains were left out: the machine is too busy")
        if self.to_spoil:
            self.fail(f"no answer could be spoiled: {self.to_spoil}")


def main(arguments):
    to_spoil, first, is_counting = None, 0, "--counting" in arguments
    arguments = [argument for argument in arguments if argument != "--counting"]
    if "--spoil" in arguments:
        at = arguments.index("--spoil")
        to_spoil, first = arguments[at + 1], int(arguments[at + 2])
        arguments = arguments[:at]
    generations = {"january": January(), "july": July(), "rules": Rules()}
    if arguments[0] == "write":
        folder, seed, domains, generation = arguments[1], arguments[2], int(arguments[3]), generations[arguments[4]]
        for index in range(domains):
            with open(f"{folder}/{name_of(index)}.yaml", "w", encoding="utf-8") as file:
                file.write(to_yaml(domain_of(seed, index, generation)))
        return 0
    seed, domains, generation = arguments[1], int(arguments[2]), generations[arguments[3]]
    ports = ([int(port) for port in arguments[4:]] + [0, 0])[:3]
    model = generation if isinstance(generation, Weir) else Counting() if is_counting else Weir()
    comparison = Comparison(seed, generation, model, ports, to_spoil)
    comparison.run(first, domains)
    comparison.report(domains)
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
