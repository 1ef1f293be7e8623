"""What envoyproxy/ratelimit answers, by the files it was given: plain, slow, and itself held to the real service.

Used by envoy_reference.py. A domain is the tree of its YAML. `January` and `July` are the two generations of the
service: since July, `*` may stand anywhere and not only at the end, and a request is over its limit if all of its
quota descriptors are. Weir answers as July does, but for the differences that `Weir` lists. One descriptor's counter
is named by what is really counted; the service's own name of it in Redis can be that of another counter, too.
"""
from dataclasses import dataclass, field

import envoy_configs

SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 7 * 86400, "MONTH": 30 * 86400,
           "YEAR": 365 * 86400}
UNLIMITED = 4294967295


@dataclass
class Found:
    """The limit that holds a descriptor."""
    per_unit: int
    unit: str
    name: str = ""
    replaces: tuple = ()
    unlimited: bool = False
    shadow: bool = False
    quota: bool = False
    values: tuple = ()  # by which it is counted: a shared pattern in place of a value
    own: tuple = ()     # of an override: a limit of its own is a count of its own


@dataclass
class Charge:
    """What one descriptor asks of one counter."""
    counter: tuple
    redis_key: str
    hits: int
    found: Found


@dataclass
class Answer:
    code: str = "OK"
    statuses: list = field(default_factory=list)
    charged: list = field(default_factory=list)  # charges that stay


def composite(node):
    return node["key"] + ("_" + node["value"] if node.get("value") else "")


def matches(pattern, text, anywhere):
    """`*` is any text; to the older service only at the end."""
    if not anywhere:
        return pattern.endswith("*") and text.startswith(pattern[:-1])
    if "*" not in pattern:
        return pattern == text
    head, *middle, tail = pattern.split("*")
    if len(text) < len(head) + len(tail) or not text.startswith(head) or not text.endswith(tail):
        return False
    rest = text[len(head):len(text) - len(tail)]
    for part in middle:
        place = rest.find(part)
        if place < 0:
            return False
        rest = rest[place + len(part):]
    return True


def step(nodes, key, value, anywhere):
    """The descriptor that an entry leads to, and whether by a wildcard."""
    whole = f"{key}_{value}"
    for node in nodes:
        if composite(node) == whole:
            return node, False
    for node in nodes:
        if "*" in composite(node) and matches(composite(node), whole, anywhere):
            return node, True
    for node in nodes:
        if composite(node) == key:
            return node, False
    return None, False


def find(domain, descriptor, anywhere):
    """None if nothing holds the descriptor."""
    entries = [(entry["key"], entry.get("value", "")) for entry in descriptor["entries"]]
    plain = tuple(value for _, value in entries)
    if limit := descriptor.get("limit"):
        per_unit = limit.get("requestsPerUnit", 0)
        return Found(per_unit, limit["unit"], values=plain, own=(per_unit, limit["unit"]))
    nodes, node, values = domain["descriptors"], None, []
    for key, value in entries:
        node, by_wildcard = step(nodes, key, value, anywhere)
        if node is None:
            return None
        pattern = composite(node)
        shared = by_wildcard and node.get("share_threshold")
        values.append(pattern.removeprefix(key + "_") if shared else value)
        nodes = node.get("descriptors", [])
        if not nodes:
            break
    if node is None or len(values) < len(entries) or "rate_limit" not in node:
        return None
    limit = node["rate_limit"]
    return Found(limit.get("requests_per_unit", 0), limit.get("unit", "").upper(), limit.get("name", ""),
                 tuple(other["name"] for other in limit.get("replaces", [])), limit.get("unlimited", False),
                 node.get("shadow_mode", False), node.get("quota_mode", False), tuple(values))


def hits_of(request, descriptor):
    return descriptor["hitsAddend"] if "hitsAddend" in descriptor else max(1, request.get("hitsAddend", 0))


def held(domain, request, anywhere):
    """For each descriptor: what holds it, after some limits have replaced others."""
    found = [find(domain, descriptor, anywhere) if domain else None for descriptor in request["descriptors"]]
    replaced = {name for one in found if one for name in one.replaces}
    return [None if one and not one.unlimited and one.name and one.name in replaced else one for one in found]


def charge_of(request, descriptor, found, now):
    keys = [entry["key"] for entry in descriptor["entries"]]
    seconds = SECONDS[found.unit]
    begin = now // seconds * seconds
    text = "".join(f"{key}_{value}_" for key, value in zip(keys, found.values))
    counter = (request["domain"], tuple(zip(keys, found.values)), found.own, seconds, begin)
    return Charge(counter, f"{request['domain']}_{text}{begin}", hits_of(request, descriptor), found)


class July:
    """The service as it is. Limits are charged in turn, whatever comes of the others."""
    files = envoy_configs.July
    anywhere = True
    quota_decides = True

    def charges(self, domain, request, now):
        return [charge_of(request, descriptor, found, now) if found and not found.unlimited else found
                for descriptor, found in zip(request["descriptors"], held(domain, request, self.anywhere))]

    def answer(self, charges, counts, now):
        answer, spent = Answer(), dict(counts)
        quotas = quotas_over = 0
        for charge in charges:
            if charge is None:
                answer.statuses.append({"code": "OK"})
                continue
            if isinstance(charge, Found):
                answer.statuses.append({"code": "OK", "limitRemaining": UNLIMITED})
                continue
            found = charge.found
            after = spent.get(charge.counter, 0) + charge.hits
            is_over = after > found.per_unit
            self.spend(spent, charge, is_over)
            if not is_over:
                answer.charged.append(charge)
            is_denied = is_over and not found.shadow
            status = {"code": "OVER_LIMIT" if is_denied else "OK",
                      "currentLimit": {"requestsPerUnit": found.per_unit, "unit": found.unit, "name": found.name},
                      "limitRemaining": 0 if is_over else found.per_unit - after,
                      "durationUntilReset": SECONDS[found.unit] - now % SECONDS[found.unit]}
            quotas += found.quota
            quotas_over += found.quota and is_denied
            if is_denied and found.quota and not self.quota_decides:
                status["code"], status["durationUntilReset"] = "OK", 0
            if is_denied and not found.quota:
                answer.code = "OVER_LIMIT"
            answer.statuses.append(status)
        if self.quota_decides and quotas > 0 and quotas == quotas_over:
            answer.code = "OVER_LIMIT"
        if answer.code == "OVER_LIMIT":
            answer.charged = []
        return answer

    @staticmethod
    def spend(spent, charge, is_over):
        spent[charge.counter] = spent.get(charge.counter, 0) + charge.hits


class January(July):
    files = envoy_configs.January
    anywhere = False
    quota_decides = False


class Weir(July):
    """Charges one verdict: a limit that a request does not fit is not charged, and nothing of a denied request is."""

    @staticmethod
    def spend(spent, charge, is_over):
        if not is_over:
            spent[charge.counter] = spent.get(charge.counter, 0) + charge.hits


class Rules(Weir):
    """Files that were imported as rules, of those that rules can say. Other names are told, and nothing in shadow.
    A denied request is told of what others have spent: it got nothing of what remains."""
    files = envoy_configs.Rules

    def charges(self, domain, request, now):
        charges = super().charges(domain, request, now)
        counters = [charge.counter for charge in charges if isinstance(charge, Charge)]
        return charges if len(set(counters)) == len(counters) else None

    def answer(self, charges, counts, now):
        answer = super().answer(charges, counts, now)
        for i, charge in enumerate(charges):
            if isinstance(charge, Charge):
                answer.statuses[i]["currentLimit"]["name"] = ""
                if answer.code == "OVER_LIMIT":
                    self.tell_what_is_spent(answer.statuses[i], charge, counts.get(charge.counter, 0))
                if charge.found.shadow:
                    answer.statuses[i] = {"code": "OK"}
        return answer

    @staticmethod
    def tell_what_is_spent(status, charge, spent):
        status["limitRemaining"] = charge.found.per_unit - spent
        if spent == 0:  # the window has not begun
            status["durationUntilReset"] = 1 if status["code"] == "OVER_LIMIT" else 0
