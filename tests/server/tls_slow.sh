# Two hundred clients that start a handshake, or a PROXY header, and never finish it. The server cuts them off in time
# and serves other clients meanwhile.
source "$(dirname "$0")/tls.bash"
authority ca
certificate ca server
start_server --tls-cert "$work/server.pem" --tls-key "$work/server.key" --tls http,grpc,admin --threads 1 \
  --proxy-protocol resp --proxy-protocol-from 127.0.0.0/8
timeout 600 "$python" - "$http_port" "$grpc_port" "$resp_port" >"$work/slow" 2>&1 <<'PY' &
import select
import socket
import sys
import time

# Nothing at all, a part, and a part that grows by a byte a second.
TLS = bytes.fromhex("16030100c8010000c40303") + bytes(range(100))
PROXY = b"PROXY TCP6 2001:db8::1 2001:db8::2 56324 443"
clients = []
for i in range(200):
    port = int(sys.argv[1 + i % 3])
    client = socket.create_connection(("127.0.0.1", port))
    words = PROXY if i % 3 == 2 else TLS
    if i % 2:
        client.sendall(words[:11])
    clients.append((client, words, i % 4 == 1))
print("open", flush=True)
begin = time.monotonic()
cut = 0
while clients and time.monotonic() - begin < 70:  # a client that grows has more bytes than that
    time.sleep(1)
    gone = {client for client in select.select([client for client, _, _ in clients], [], [], 0)[0]}
    cut += len(gone)
    clients = [one for one in clients if one[0] not in gone]
    at = 11 + int(time.monotonic() - begin)
    for client, words, grows in clients:
        if grows:
            try:
                client.send(words[at:at + 1])
            except OSError:
                pass
print(f"{time.monotonic() - begin:.1f} {cut}")
PY
slow=$!
until_true 20 grep -q open "$work/slow"
is "other clients are served" ok "$(secure_curl "$http/livez")"
wait "$slow"
read -r cut_after cut <<<"$(tail -1 "$work/slow")"
is "all are cut off" 200 "$cut"
took "seconds until then" "$cut_after" 20
is "and afterwards" ok "$(secure_curl "$http/livez")"
finish
