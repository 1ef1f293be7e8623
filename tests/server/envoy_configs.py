"""Random files for envoyproxy/ratelimit, and random requests about them, all from a seed. Used by envoy_reference.py.

Few keys and values, so that they meet: exact values, wildcards at any place and bare keys on one level, keys that end
where others go on (`a` and `a_b`), names that replace each other, limits that are soon reached. What the service would
refuse to load is not made here.
"""
import json

UNITS = ["second", "minute", "minute", "hour", "Day", "WEEK", "month", "year"]
OVERRIDE_UNITS = ["SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"]
NAMES = ["n1", "n2", "n3"]


class July:
    """All that the service takes."""
    keys = ["a", "a_b", "b", "remote_address", "a", "b", "a_b", "a*"]
    values = ["x", "xy", "xyzzy", "b", "b_c", "c", "192.0.2.1", "/api/v1/users", "é", "x y", "*x", ""]
    patterns = ["*", "x*", "xy*", "b*", "/api/*", "b_*", "*y", "x*y", "/api/*/users", "*b*c*", "*_c", "x**"]
    fillers = ["", "x", "y", "b_c", "/"]  # in place of a star
    only_plain = False


class January(July):
    """Stars at the end alone."""
    patterns = ["*", "x*", "xy*", "b*", "/api/*", "b_*"]


class Rules(July):
    """What rules can say, and say alike: every key once on a way, no `_` to be misread, no value empty."""
    keys = ["a", "b", "c", "d-e"]
    values = ["x", "xy", "xyzzy", "b", "/api/v1/users", "é", "x y"]
    patterns = ["*", "x*", "xy*", "b*", "/api/*", "*y", "x*y", "/api/*/users", "*b*c*", "x**"]
    fillers = ["x", "y", "b", "/"]
    only_plain = True


def make_limit(rng, of):
    limit = {}
    if rng.random() < 0.1:
        limit["unlimited"] = True
    else:
        limit["unit"] = rng.choice(UNITS)
        if rng.random() < 0.95:
            limit["requests_per_unit"] = rng.choice([0, 1, 2, 3, 3, 4, 5, 7, 10, 1000, 4294967295])
    if rng.random() < 0.5:
        limit["name"] = rng.choice(NAMES)
    others = [name for name in NAMES if name != limit.get("name")]
    if rng.random() < 0.25 and not of.only_plain:
        limit["replaces"] = [{"name": name} for name in rng.sample(others, rng.randint(1, len(others)))]
    return limit


def make_descriptors(rng, of, quotas, keys):
    nodes, taken, depth = [], set(), len(keys) + 1
    for _ in range(rng.randint(1, 5 if depth == 1 else 3)):
        node = {"key": rng.choice([key for key in of.keys if not of.only_plain or key not in keys])}
        kind = rng.random()
        if kind < 0.35:
            node["value"] = rng.choice([value for value in of.values if "*" not in value])
        elif kind < 0.65:
            node["value"] = rng.choice(of.patterns)
        whole = node["key"] + ("_" + node["value"] if node.get("value") else "")
        if whole in taken or (of is January and "*" in whole[:-1]):
            continue
        taken.add(whole)
        if "*" in whole and rng.random() < 0.4:
            node["share_threshold"] = True
        goes_on = depth < 3 and rng.random() < 0.45
        if rng.random() < (0.5 if goes_on else 0.9):
            node["rate_limit"] = make_limit(rng, of)
        for flag, share in [("shadow_mode", 0.12), ("quota_mode", quotas), ("detailed_metric", 0.1),
                            ("value_to_metric", 0.1)]:
            if rng.random() < share:
                node[flag] = rng.random() < 0.9
        if goes_on:
            node["descriptors"] = make_descriptors(rng, of, quotas, keys + [node["key"]])
        nodes.append(node)
    return nodes


def make_domain(rng, of, name):
    quotas = 0 if of.only_plain else rng.choice([0.1, 0.1, 0.8])  # some have more than one, and need others for it
    return {"domain": name, "descriptors": make_descriptors(rng, of, quotas, [])}


def to_yaml(domain):
    """JSON is YAML; with a line for each descriptor, so that it can be read."""
    lines = [f"domain: {json.dumps(domain['domain'])}", "descriptors:"]
    lines += ["  - " + json.dumps(node, ensure_ascii=False) for node in domain["descriptors"]]
    return "\n".join(lines) + "\n"


def make_value(rng, of, node):
    value = node.get("value", "")
    if "*" in value and (of.only_plain or rng.random() < 0.9):
        return "".join(rng.choice(of.fillers) if c == "*" else c for c in value)
    return value or rng.choice(of.values)


def make_entries(rng, of, domain):
    """Mostly a way through the tree; sometimes it ends early, goes on too far, or is another's spelling."""
    entries, nodes = [], domain["descriptors"]
    while nodes and (not entries or rng.random() < 0.85):
        node = rng.choice(nodes)
        entries.append({"key": node["key"].replace("*", rng.choice(["", "1"])), "value": make_value(rng, of, node)})
        if rng.random() < 0.08:
            entries[-1]["value"] = rng.choice(of.values)
        nodes = node.get("descriptors")
    if rng.random() < 0.08:
        entries.append({"key": "z" if of.only_plain else rng.choice(of.keys), "value": rng.choice(of.values)})
    if entries and rng.random() < 0.15:
        respell(entries[-1])
    if not entries or rng.random() < 0.02:
        entries = [{"key": "nobody", "value": "x"}]
    for entry in entries:
        if entry["value"] == "" and rng.random() < 0.5:
            del entry["value"]
    return entries


def respell(entry):
    """`a` + `b_c` as `a_b` + `c`, or back: the service takes both for one."""
    if "_" in entry["value"]:
        head, entry["value"] = entry["value"].split("_", 1)
        entry["key"] += "_" + head
    elif entry["key"] == "a_b":
        entry["key"], entry["value"] = "a", "b_" + entry["value"]


def make_request(rng, of, domain):
    name = domain["domain"] if rng.random() < 0.97 else "nowhere"
    request = {"domain": name, "descriptors": []}
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4])):
        descriptor = {"entries": make_entries(rng, of, domain)}
        if rng.random() < 0.1 and not of.only_plain:
            descriptor["limit"] = {"requestsPerUnit": rng.randint(0, 4), "unit": rng.choice(OVERRIDE_UNITS)}
        if rng.random() < 0.15:
            descriptor["hitsAddend"] = rng.choice([1, 2, 4] if of.only_plain else [0, 0, 1, 2, 4])
        request["descriptors"].append(descriptor)
    if rng.random() < 0.2:
        request["hitsAddend"] = rng.choice([0, 1, 2, 3])
    return request
