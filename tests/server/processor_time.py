"""The processor time of a server. For attack_http2.py and hash_flood.py."""
import os


def processor_seconds(pid):
    """Of all its threads."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9
