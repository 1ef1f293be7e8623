# Debian's gRPC client for Python, some years older, which learns all it knows of the server from the server.
# What is said stands in grpc_clients.py.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/grpc_talk.bash"
"$python" -c 'import grpc' 2>/dev/null || missing grpc "has no client here (needs python3-grpcio)"
talk reflection
finish
