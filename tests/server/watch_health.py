"""gRPC's health service as its clients use it.

watch_health.py PORT watch          a line for each thing that a watcher is told
watch_health.py PORT calls SECONDS  one call after the other on one channel; then how many, and what failed
"""
import sys
import time

import grpc

channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}")


def method(kind, name):
    return kind(f"/grpc.health.v1.Health/{name}", lambda message: message, lambda message: message)


def text(message):
    return {b"\x08\x01": "SERVING", b"\x08\x02": "NOT_SERVING"}.get(message, message)


if sys.argv[2] == "watch":
    try:
        for message in method(channel.unary_stream, "Watch")(b""):
            print(text(message), flush=True)
    except grpc.RpcError as error:
        print(error.code().name, flush=True)
else:
    check, calls, failures = method(channel.unary_unary, "Check"), 0, []
    end = time.monotonic() + float(sys.argv[3])
    while time.monotonic() < end:
        calls += 1
        try:
            if text(check(b"", timeout=60)) != "SERVING":
                failures.append("NOT_SERVING")
        except grpc.RpcError as error:
            failures.append(error.code().name)
        time.sleep(0.002)
    print(f"calls={calls} failed={len(failures)} {' '.join(sorted(set(failures)))}")
