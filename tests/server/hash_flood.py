"""Keys that would all meet in one place of a table with a known hash: called by hash_flood.sh.

hash_flood.py PORT PID SEED COUNT FAMILY

Families of keys that collide under hashes whose seed an attacker knows or does not need: strings that are equal under
Java's x31, equal but for one end, complements in one half (XXH3), names in the same bucket of CRC-32. The server's hash
has a secret of its own: each family must cost what random keys cost, and no two keys may be taken for one. Prints how
many keys there were, how many were allowed at first and again, and the server's time for a key as a ratio to random
keys, the median of several pieces.
"""
import itertools
import random
import statistics
import sys
import zlib

from processor_time import processor_seconds
from resp_pipe import Pipe, resp

PIECES = 9


def random_keys(dice, count):
    return [dice.randbytes(34) for _ in range(count)]


def java_keys(_, count):
    """Pairs of "Aa" or "BB": one value under h * 31 + c."""
    pairs = max(17, count.bit_length())
    return [b"".join(pair) for pair in itertools.islice(itertools.product((b"Aa", b"BB"), repeat=pairs), count)]


def prefix_keys(_, count):
    return [b"/" * 26 + b"%08d" % i for i in range(count)]


def suffix_keys(_, count):
    return [b"%08d" % i + b"/" * 26 for i in range(count)]


def complement_keys(dice, count):
    """Pairs of 32 bytes whose halves are complements of each other's: a multiplication of halves does not distinguish them."""
    keys = []
    while len(keys) < count:
        number = dice.getrandbits(256)
        keys += [b"k:" + number.to_bytes(32, "big"), b"k:" + (number ^ (1 << 256) - 1).to_bytes(32, "big")]
    return keys[:count]


def crc_keys(dice, count):
    """One value under CRC-32, whatever the seed: a checksum is linear, so four bytes undo whatever stands before."""
    table, by_top = [0] * 256, {}
    for i in range(256):
        value = i
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
        table[i] = value
        by_top[value >> 24] = i
    keys = []
    for i in range(count):
        head = b"%010d" % i + dice.randbytes(20)
        state, goal = zlib.crc32(head) ^ 0xFFFFFFFF, 0x12345678 ^ 0xFFFFFFFF
        steps, value = [], goal
        for _ in range(4):
            index = by_top[value >> 24]
            value = (value ^ table[index]) << 8 & 0xFFFFFFFF
            steps.append(index)
        tail = b""
        for index in reversed(steps):
            tail += bytes([(state ^ index) & 0xFF])
            state = table[index] ^ state >> 8
        keys.append(head + tail)
        assert zlib.crc32(keys[-1]) == 0x12345678
    return keys


FAMILIES = {"random": random_keys, "java": java_keys, "prefix": prefix_keys, "suffix": suffix_keys,
            "complement": complement_keys, "crc": crc_keys}


def spend(port, pid, keys):
    """(allowed at first, allowed again, the server's seconds)"""
    blob = b"".join(resp("CL.THROTTLE", key, 0, 1, 864000) for key in keys)
    pipe, before = Pipe(port), processor_seconds(pid)
    first, _, _ = pipe.talk(blob, len(keys))
    again, _, _ = pipe.talk(blob, len(keys))
    return first, again, processor_seconds(pid) - before


def main(port, pid, seed, count, family):
    """In pieces, each after as many random keys: what else happens on the machine meets both."""
    dice = random.Random(f"{seed} {family}")
    keys, others = FAMILIES[family](dice, count), random_keys(dice, count)
    assert len(set(keys)) == count
    spend(port, pid, random_keys(dice, count // PIECES))  # the first ones pay for the memory
    ratios, first, again = [], 0, 0
    for i in range(PIECES):
        part = slice(i * count // PIECES, (i + 1) * count // PIECES)
        _, _, base = spend(port, pid, others[part])
        allowed, allowed_again, seconds = spend(port, pid, keys[part])
        first, again = first + allowed, again + allowed_again
        ratios.append(seconds / base)
    print(count, first, again, round(statistics.median(ratios), 2), flush=True)


main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
