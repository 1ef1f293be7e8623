# The PROXY protocol: a trusted proxy names the client in a valid header, once, at the beginning. Both versions, as raw
# bytes and with curl, also with TLS behind the header. proxy_protocol_haproxy.sh has HAProxy.
source "$(dirname "$0")/tls.bash"
cat >"$work/weir.yaml" <<'YAML'
trusted_proxies: [10.9.0.0/16]
rules:
  - {name: each, per: ip, limit: 100/hour, algorithm: sliding_log}
YAML

# --- flags -----------------------------------------------------------------------------------------------------------
serves_not "--proxy-protocol needs --proxy-protocol-from" --proxy-protocol http
serves_not "--proxy-protocol-from needs --proxy-protocol" --proxy-protocol-from 10.0.0.0/8
serves_not "unknown listener 'web'; write some of http,grpc,resp,admin" \
  --proxy-protocol web --proxy-protocol-from 10.0.0.0/8
serves_not "the admin listener takes no PROXY headers" --proxy-protocol http,admin --proxy-protocol-from 10.0.0.0/8
serves_not "did you mean 10.0.0.0/8?" --proxy-protocol http --proxy-protocol-from 10.1.2.3/8

# --- raw bytes -------------------------------------------------------------------------------------------------------
start_server --config "$work/weir.yaml" --proxy-protocol http,resp --proxy-protocol-from 127.0.0.1
asks='GET /auth HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
# left HEADER [FIELDS]: what is left for the client in that header; nothing if there is no answer.
left() {
  printf "$1${asks/Host: x/Host: x${2:-}}" | raw "$http_port" | tr -d '\r' | sed -n 's/^X-RateLimit-Remaining: //p'
}
v1='PROXY TCP4 192.0.2.1 192.0.2.9 56324 443\r\n'
signature='\r\n\r\n\0\r\nQUIT\n'
v2=$signature'\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\x09\xdc\4\1\xbb'
is "version 1 names a client" 99 "$(left "$v1")"
is "version 2 names the same" 98 "$(left "$v2")"
is "version 2 with more behind its addresses" 97 \
  "$(left "$signature"'\x21\x11\0\x12\xc0\0\2\1\xc0\0\2\x09\xdc\4\1\xbb\4\0\3abc')"
is "a mapped IPv6 address is the same client" 96 "$(left 'PROXY TCP6 ::ffff:192.0.2.1 ::ffff:192.0.2.9 1 2\r\n')"
is "another client" 99 "$(left "${v1/192.0.2.1/192.0.2.2}")"
is "an IPv6 client" 99 "$(left 'PROXY TCP6 2001:db8::1 2001:db8::9 56324 443\r\n')"
is "a header of a client is not believed" 98 "$(left "${v1/192.0.2.1/192.0.2.2}" '\r\nX-Forwarded-For: 192.0.2.77')"
is "a header of a trusted proxy is believed" 99 "$(left "${v1/192.0.2.1/10.9.1.1}" '\r\nX-Forwarded-For: 192.0.2.77')"
is "UNKNOWN is the proxy itself" 99 "$(left 'PROXY UNKNOWN\r\n')"
is "so is LOCAL" 98 "$(left "$signature"'\x20\0\0\0')"
for wrong in '' 'PROXY TCP4 192.0.2.1 192.0.2.9 56324\r\n' 'proxy TCP4 192.0.2.1 192.0.2.9 1 2\r\n' \
  "$signature"'\x31\x11\0\x0c\xc0\0\2\1\xc0\0\2\x09\xdc\4\1\xbb' \
  "$signature"'\x21\x11\0\x0b\xc0\0\2\1\xc0\0\2\x09\xdc\4\1' \
  "$signature"'\x20\0\xff\xff'; do
  is "no header: ${wrong:0:60}" "" "$(left "$wrong")"
done
has "a second header is a bad request" "HTTP/1.1 400" "$(printf "$v1$v1$asks" | raw "$http_port")"
is "RESP behind it" "+PONG" "$(printf "$v1"'PING\r\n' | raw "$resp_port" | tr -d '\r')"
is "RESP without" "" "$(printf 'PING\r\n' | raw "$resp_port")"
is "a listener that was not named takes none" ok "$(curl -s -m 60 "http://127.0.0.1:$admin_port/livez")"

# In pieces, with the request right behind: nothing of it is read too early.
in_pieces() {
  local i bytes
  bytes=$(printf "$1$asks" | od -An -v -tx1 | tr -d ' \n')
  exec 7<>"/dev/tcp/127.0.0.1/$http_port"
  for ((i = 0; i < ${#bytes}; i += 2)); do printf "\\x${bytes:i:2}" >&7; done
  timeout 10 cat <&7 | tr -d '\r' | sed -n 's/^X-RateLimit-Remaining: //p'
  exec 7>&-
}
is "version 1, byte by byte" 95 "$(in_pieces "$v1")"
is "version 2, byte by byte" 94 "$(in_pieces "$v2")"
is "curl's own header" ok "$(curl -s -m 60 --haproxy-protocol "$http/livez")"
is "a peer that is no proxy is not let in" "" "$(curl -s -m 5 --interface 127.0.0.2 --haproxy-protocol "$http/livez")"

# --- with TLS --------------------------------------------------------------------------------------------------------
authority ca
certificate ca server
start_server --config "$work/weir.yaml" --proxy-protocol http --proxy-protocol-from 127.0.0.0/8 \
  --tls-cert "$work/server.pem" --tls-key "$work/server.key" --tls http
is "the header comes before TLS" ok "$(curl -s -m 60 --cacert "$work/ca.pem" --haproxy-protocol "$http/livez")"
is "never within" "" "$(curl -s -m 5 --cacert "$work/ca.pem" "$http/livez")"

ends_well "a stop ends well"
finish
