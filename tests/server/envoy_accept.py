"""Random files, most of them damaged: what envoyproxy/ratelimit refuses Weir refuses, and what it takes Weir takes.

envoy_accept.py CHECK PROGRAM FOLDER SEED COUNT january|july

CHECK is the reference's own checker of files, PROGRAM is Weir; both are asked about each of COUNT folders. For
envoy_examples.sh. Values are changed to texts that YAML reads in surprising ways, keys misspelt or put elsewhere,
descriptors doubled. Not made is what Weir refuses on purpose: a key twice in a map, a second document, a tag. Prints
"failed: ..." lines and exits with 1.
"""
import collections
import json
import os
import random
import shutil
import subprocess
import sys

import envoy_configs


class Raw(str):
    """Stands in the text as it is."""


SCALARS = [Raw(text) for text in [
    "5", "'5'", '"x"', "5.0", "-1", "4294967295", "4294967296", "1e3", "0x10", "010", "0o10", "0b11", "1_000", "+5",
    "true", "True", "yes", "no", "on", "off", "y", "null", "~", "", "''", "abc", "x y", "2026-01-01", ".inf", ".nan",
    "[]", "{}", "[a]", "[1]", "{a: b}", "{key: a}", "[{key: a}]", "[{name: n1}]", "minute", "MINUTE", "unknown", "*",
    "99999999999999999999", "1:30", "<<", "é", "=", "-", "a*"]
    if text not in ("*", "-")]
KEYS = ["domain", "descriptors", "key", "value", "rate_limit", "unit", "requests_per_unit", "unlimited", "name",
        "replaces", "shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold"]
WRONG_KEYS = ["Key", "keys", "ratelimit", "rate-limit", "requestsPerUnit", "colour", Raw("5"), Raw("true"), Raw("~")]


def text_of(value):
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key_text(key)}: {text_of(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(text_of(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def key_text(key):
    return key if isinstance(key, Raw) or key in KEYS else json.dumps(key, ensure_ascii=False)


def maps_of(tree):
    """Every map of the tree, with what it is."""
    found = [tree]
    for value in tree.values():
        if isinstance(value, dict):
            found += maps_of(value)
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, dict):
                    found += maps_of(one)
    return found


def damage(rng, tree, newer):
    """Changes the tree, and says how."""
    place = rng.choice(maps_of(tree))
    kind = rng.choice(["value", "value", "value", "wrong key", "known key", "remove", "double", "own name", "metadata"])
    if kind == "value" and place:
        place[rng.choice(list(place))] = rng.choice(SCALARS)
    elif kind == "wrong key":
        place[rng.choice(WRONG_KEYS)] = rng.choice(SCALARS)
    elif kind == "known key":
        place[rng.choice(KEYS)] = rng.choice(SCALARS)
    elif kind == "remove" and place:
        del place[rng.choice(list(place))]
    elif kind == "double":
        lists = [one for one in map(lambda one: one.get("descriptors"), maps_of(tree)) if isinstance(one, list) and one]
        if lists:
            chosen = rng.choice(lists)
            chosen.append(dict(rng.choice(chosen)) if isinstance(chosen[0], dict) else {})
    elif kind == "own name" and "name" in place:
        place["replaces"] = [{"name": place["name"]}]
    elif kind == "metadata" and newer and "key" in place:
        place["metadata"] = rng.choice([{"a": 1, "b": {"c": [1, True, "x"]}}, {}, Raw("{a: 5.5}"), Raw("~")])
    return kind


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def main(check, program, folder, seed, count, generation):
    files = envoy_configs.July if generation == "july" else envoy_configs.January
    seen, failed = collections.Counter(), 0
    for index in range(int(count)):
        rng = random.Random(f"{seed}/{index}")
        place = f"{folder}/accept"
        shutil.rmtree(place, ignore_errors=True)
        os.mkdir(place)
        how = []
        for number in range(rng.choice([1, 1, 1, 2])):
            tree = envoy_configs.make_domain(rng, files, rng.choice(["one", "two", "three"]))
            how += [damage(rng, tree, generation == "july") for _ in range(rng.choice([0, 1, 1, 2]))]
            with open(f"{place}/{number}.yaml", "w", encoding="utf-8") as file:
                file.write("".join(f"{key_text(key)}: {text_of(value)}\n" for key, value in tree.items()) or "{}\n")
        by_reference = run([check, "-config_dir", place])
        by_weir = run([program, "import", "envoy", place, "--explain"])
        takes = [by_reference.returncode == 0, by_weir.returncode == 0]
        seen["taken by both" if all(takes) else "refused by both"] += takes[0] == takes[1]
        if takes[0] != takes[1]:
            failed += 1
            texts = "".join(open(f"{place}/{name}", encoding="utf-8").read() for name in sorted(os.listdir(place)))
            said = by_weir.stderr if takes[0] else by_reference.stdout + by_reference.stderr
            print(f"failed: the reference {'takes' if takes[0] else 'refuses'} this, Weir does not ({index}: {how})\n"
                  f"{texts}{said[:600]}")
            if failed >= 5:
                break
    print(", ".join(f"{number} {what}" for what, number in sorted(seen.items())))
    if min(seen["taken by both"], seen["refused by both"]) * 10 < int(count) and not failed:
        print("failed: too few of one kind to show anything")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
