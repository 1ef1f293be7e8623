# Debian's gRPC client for Python, some years older. It knows only what the server's reflection returns. grpc_clients.py
# has the calls.
source "$(dirname "$0")/grpc_talk.bash"
"$python" -c 'import grpc' 2>/dev/null || missing grpc "has no client here (needs python3-grpcio)"
talk reflection
finish
