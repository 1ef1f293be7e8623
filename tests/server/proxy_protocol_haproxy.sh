# The PROXY protocol as HAProxy speaks it, both versions and with a checksum: Weir takes the client's address from it.
# proxy_protocol.sh tests invalid headers.
source "$(dirname "$0")/gateway.bash"
provide haproxy
echo 'rules: [{name: each, per: ip, limit: 100/hour, algorithm: sliding_log}]' >"$work/weir.yaml"
start_server --config "$work/weir.yaml" --proxy-protocol http,resp --proxy-protocol-from 127.0.0.1
free_port front front_v1 front_resp
cat >"$work/haproxy.cfg" <<CFG
defaults
  mode tcp
  timeout connect 5s
  timeout client 20s
  timeout server 20s
listen v2
  bind 127.0.0.1:$front
  server weir 127.0.0.1:$http_port send-proxy-v2
listen v1
  bind 127.0.0.1:$front_v1
  server weir 127.0.0.1:$http_port send-proxy
listen resp
  bind 127.0.0.1:$front_resp
  server weir 127.0.0.1:$resp_port send-proxy-v2 proxy-v2-options crc32c,unique-id
CFG
start_gateway "$front" "$haproxy" -db -f "$work/haproxy.cfg"
through() {
  curl -s -i -m 60 --interface "$2" "http://127.0.0.1:$1/auth" | tr -d '\r' | sed -n 's/^X-RateLimit-Remaining: //p'
}
is "HAProxy's version 2" "99 98" "$(through "$front" 127.0.0.7) $(through "$front" 127.0.0.7)"
is "and version 1: the same client" 97 "$(through "$front_v1" 127.0.0.7)"
is "another client is another" 99 "$(through "$front" 127.0.0.8)"
is "RESP through HAProxy, with a checksum" PONG "$(timeout 60 redis-cli -p "$front_resp" ping)"
finish
