# The newest gRPC client for Python, with the messages that Envoy's authors generated, against the real server.
# What is said stands in grpc_clients.py.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/grpc_talk.bash"
provide grpc
export PYTHONPATH=$grpc_path
talk stubs
finish
