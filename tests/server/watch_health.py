"""Watches the health of a gRPC server, one line for each thing it is told: watch_health.py PORT."""
import sys

import grpc

channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}")
watch = channel.unary_stream("/grpc.health.v1.Health/Watch", lambda message: message, lambda message: message)
try:
    for message in watch(b""):
        print({b"\x08\x01": "SERVING", b"\x08\x02": "NOT_SERVING"}.get(message, message), flush=True)
except grpc.RpcError as error:
    print(error.code().name, flush=True)
