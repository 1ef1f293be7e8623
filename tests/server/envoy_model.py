"""A model of what envoyproxy/ratelimit answers with given files: plain, slow, and compared with the real service.

Used by envoy_reference.py. A domain is the tree of its YAML. `January` and `July` are the two generations of the
service: since July, `*` may stand anywhere and not only at the end, and a request is over its limit if all of its
quota descriptors are. Weir answers as July does, except for the differences that `Weir` lists. A counter of the model
is named by what it counts. In Redis, the service can use the same name for two counters.
"""
from dataclasses import dataclass, field

import envoy_configs

SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 7 * 86400, "MONTH": 30 * 86400,
           "YEAR": 365 * 86400}
UNLIMITED = 4294967295


@dataclass
class Found:
    """The limit that applies to a descriptor."""
    per_unit: int
    unit: str
    name: str = ""
    replaces: tuple = ()
    unlimited: bool = False
    shadow: bool = False
    quota: bool = False
    values: tuple = ()  # by which it is counted: a shared pattern in place of a value
    by_wildcard: bool = False
    own: tuple = ()     # of an override: a limit of its own is a count of its own


@dataclass
class Charge:
    """What one descriptor charges to one counter."""
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
    """None if no limit applies to the descriptor."""
    entries = [(entry["key"], entry.get("value", "")) for entry in descriptor["entries"]]
    plain = tuple(value for _, value in entries)
    if limit := descriptor.get("limit"):
        per_unit = limit.get("requestsPerUnit", 0)
        return Found(per_unit, limit["unit"], values=plain, own=(per_unit, limit["unit"]))
    nodes, node, values, any_wildcard = domain["descriptors"], None, [], False
    for key, value in entries:
        node, by_wildcard = step(nodes, key, value, anywhere)
        if node is None:
            return None
        any_wildcard = any_wildcard or by_wildcard
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
                 node.get("shadow_mode", False), node.get("quota_mode", False), tuple(values), any_wildcard)


def hits_of(request, descriptor):
    return descriptor["hitsAddend"] if "hitsAddend" in descriptor else max(1, request.get("hitsAddend", 0))


def held(domain, request, anywhere):
    """For each descriptor the limit that applies, after some limits have replaced others."""
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


def status_of(charge, is_over, remaining, now):
    found = charge.found
    return {"code": "OVER_LIMIT" if is_over and not found.shadow else "OK",
            "currentLimit": {"requestsPerUnit": found.per_unit, "unit": found.unit, "name": found.name},
            "limitRemaining": 0 if is_over else remaining,
            "durationUntilReset": SECONDS[found.unit] - now % SECONDS[found.unit]}


def status_without_count(charge):
    return {"code": "OK"} if charge is None else {"code": "OK", "limitRemaining": UNLIMITED}


def charges_of(domain, request, now, anywhere):
    """For each descriptor a charge; None if no limit applies; the limit itself if it is unlimited."""
    return [charge_of(request, descriptor, found, now) if found and not found.unlimited else found
            for descriptor, found in zip(request["descriptors"], held(domain, request, anywhere))]


class July:
    """The service as it is. Limits are charged in turn, whatever comes of the others."""
    files = envoy_configs.July
    anywhere = True
    quota_decides = True

    def charges(self, domain, request, now):
        return charges_of(domain, request, now, self.anywhere)

    def answer(self, charges, counts, now):
        answer, spent = Answer(), dict(counts)
        quotas = quotas_over = 0
        for charge in charges:
            if not isinstance(charge, Charge):
                answer.statuses.append(status_without_count(charge))
                continue
            found = charge.found
            spent[charge.counter] = after = spent.get(charge.counter, 0) + charge.hits
            status = status_of(charge, after > found.per_unit, found.per_unit - after, now)
            is_denied = status["code"] == "OVER_LIMIT"
            quotas += found.quota
            quotas_over += found.quota and is_denied
            if is_denied and found.quota and not self.quota_decides:
                status["code"], status["durationUntilReset"] = "OK", 0
            if is_denied and not found.quota:
                answer.code = "OVER_LIMIT"
            answer.statuses.append(status)
        if self.quota_decides and quotas > 0 and quotas == quotas_over:
            answer.code = "OVER_LIMIT"
        return answer


class January(July):
    files = envoy_configs.January
    anywhere = False
    quota_decides = False


class Weir:
    """Answers as July does, but for what follows from one verdict over all descriptors:

    - A denied request charges nothing, so what remains does not include it.
    - A limit in shadow, or a quota where another has room, is not charged by what does not fit it.
    - Counters never pass their limits, so hits of 0 ask whether one more would pass: `count > limit` would never be.
    """
    files = envoy_configs.July

    def charges(self, domain, request, now):
        return charges_of(domain, request, now, True)

    def answer(self, charges, counts, now):
        answer = Answer()
        real = [charge for charge in charges if isinstance(charge, Charge)]
        over, remaining = {}, {}
        for charge in real:  # each for itself, before anything is charged
            left = charge.found.per_unit - counts.get(charge.counter, 0)
            over[id(charge)], remaining[id(charge)] = max(1, charge.hits) > left, left
        questions = [charge for charge in real if charge.hits == 0]
        is_denied = (any(over[id(charge)] and is_enforced(charge) for charge in questions) or
                     are_quotas_over(real, over))
        if not is_denied:
            is_denied = self.charge(real, counts, over, remaining, answer)
        if is_denied:
            answer.code, answer.charged = "OVER_LIMIT", []
        for charge in charges:
            answer.statuses.append(status_of(charge, over[id(charge)], remaining[id(charge)], now)
                                   if isinstance(charge, Charge) else status_without_count(charge))
        return answer

    def settle(self, charges, answer, counts, reference_counts):
        """The counts of both afterwards. The counters of the reference are set to those of Weir."""
        for charge in answer.charged:
            counts[charge.counter] = counts.get(charge.counter, 0) + charge.hits
        reference_counts.clear()
        reference_counts.update(counts)

    @staticmethod
    def charge(real, counts, over, remaining, answer):
        """Whether all together is denied. Else what is over and what remains is known."""
        while True:
            together = [charge for charge in real if charge.hits and not charge.found.shadow and
                        not (charge.found.quota and over[id(charge)])]
            spent = dict(counts)
            for charge in together:
                spent[charge.counter] = spent.get(charge.counter, 0) + charge.hits
                over[id(charge)] = spent[charge.counter] > charge.found.per_unit
            is_denied = any(over[id(charge)] for charge in together)
            if not is_denied:
                break
            if any(over[id(charge)] and not charge.found.quota for charge in together) or are_quotas_over(real, over):
                return True
        spent = dict(counts)
        shadows = [charge for charge in real if charge.hits and charge.found.shadow]
        for charge in together + shadows:
            left = charge.found.per_unit - spent.get(charge.counter, 0) - charge.hits
            over[id(charge)], remaining[id(charge)] = left < 0, left
            if left >= 0:
                spent[charge.counter] = spent.get(charge.counter, 0) + charge.hits
                answer.charged.append(charge)
        return False


class Counting(Weir):
    """Weir with --envoy-count-denied: what a limit of the files has left is spent by what it denies. The reference is
    left alone, and goes on beyond its limits; only what a request brought itself is not counted when it is denied."""

    def settle(self, charges, answer, counts, reference_counts):
        charged = {id(charge) for charge in answer.charged}
        for charge in charges:
            if not isinstance(charge, Charge) or (charge.found.own and answer.code == "OVER_LIMIT"):
                continue
            spent, counter = counts.get(charge.counter, 0) + charge.hits, charge.counter
            counts[counter] = spent if id(charge) in charged else min(spent, charge.found.per_unit)
            reference_counts[counter] = reference_counts.get(counter, 0) + charge.hits


def is_enforced(charge):
    return not charge.found.shadow and not charge.found.quota


def are_quotas_over(real, over):
    """There are some, and all of them are over; one in shadow never is."""
    quotas = [charge for charge in real if charge.found.quota]
    return bool(quotas) and all(over[id(charge)] and not charge.found.shadow for charge in quotas)


class Rules(Weir):
    """Files that were imported as rules, as far as rules can express them.

    Answers have other names, and no limit in shadow. The answer to a denied request says what other requests have used.
    """
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
