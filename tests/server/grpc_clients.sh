# The newest gRPC client for Python, with the messages that Envoy's authors generated, against the real server.
# grpc_clients.py has the calls.
source "$(dirname "$0")/grpc_talk.bash"
provide grpc
export PYTHONPATH=$grpc_path
talk stubs
finish
