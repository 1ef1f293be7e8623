# TLS on all four listeners, with independent clients: which clients get in, and how a certificate changes while
# connections are open. The responses inside are the same as without TLS.
source "$(dirname "$0")/tls.bash"
source "$(dirname "$0")/gateway.bash"
authority ca
authority other_ca
certificate ca server
certificate ca client
certificate other_ca stranger
tls=(--tls-cert "$work/server.pem" --tls-key "$work/server.key")

# --- invalid files ---------------------------------------------------------------------------------------------------
certificate ca another
certificate ca expired -1
openssl pkey -in "$work/server.key" -aes128 -passout pass:secret -out "$work/locked.key"
echo nothing >"$work/nothing.pem"
head -c 300 "$work/server.pem" >"$work/cut.pem"
mkfifo "$work/fifo"
# pair_is_refused PART CERTIFICATE KEY
pair_is_refused() { serves_not "$1" --tls-cert "$work/$2" --tls-key "$work/$3"; }
pair_is_refused "$work/none.pem: cannot be opened: No such file" none.pem server.key
pair_is_refused "is not a regular file" fifo server.key
pair_is_refused "nothing.pem has no certificate; a certificate begins with -----BEGIN CERTIFICATE-----" \
  nothing.pem server.key
pair_is_refused "write complete certificates as PEM" cut.pem server.key
pair_is_refused "server.pem has no private key" server.pem server.pem
pair_is_refused "remove it: openssl pkey -in $work/locked.key" server.pem locked.key
pair_is_refused "another.key does not match the certificate in $work/server.pem" server.pem another.key
pair_is_refused "expired.pem expired on " expired.pem expired.key
serves_not "nothing.pem has no certificate" "${tls[@]}" --tls-client-ca "$work/nothing.pem"
serves_not "--tls-cert needs --tls-key" --tls-cert "$work/server.pem"
serves_not "--tls-key needs --tls-cert" --tls-key "$work/server.key"
serves_not "--tls needs --tls-cert" --tls http
serves_not "unknown listener 'htp'; write some of http,grpc,resp,admin" "${tls[@]}" --tls htp
refuses 1 "leave that listener out" serve --grpc off --resp off --admin off "${tls[@]}" --tls http \
  --http "unix:$work/http.sock"

# --- what the page shows ---------------------------------------------------------------------------------------------
# The example of docs/operate.md, on this run's ports.
free_port shown_http shown_resp
mkdir "$work/shown"
example=$(sed -n '/^## TLS/,/^## Bounds/p' "$2/docs/operate.md" | sed -n '/^```sh$/,/^```$/p' | grep -v '^```' |
  sed -e "s#^weir serve#'$program' serve --http :$shown_http --grpc off --resp :$shown_resp --admin off#" \
    -e "s#^weir check#'$program' check#; s/8080/$shown_http/; s/6380/$shown_resp/" \
    -e 's/ &$/ >out \& until grep -q ^ready out; do sleep 0.1; done/')
is "the example of the page" "ok PONG allowed: 8 of 9 left" \
  "$(cd "$work/shown" && timeout 30 bash -c "$example"$'\nkill %1' 2>/dev/null |
    sed 's/ left,.*/ left/' | paste -sd' ')"

# --- four listeners --------------------------------------------------------------------------------------------------
start_server "${tls[@]}" --log-level debug
announced=$(cat "$work/out0")
has "announced: https" "http  https://127.0.0.1:$http_port" "$announced"
has "announced: rediss" "resp  rediss://127.0.0.1:$resp_port" "$announced"
while read -r line; do
  is "the announcement's command works: ${line:0:30}" yes \
    "$(bash -c "$line" 2>/dev/null | grep -Eq '200 OK|15' && echo yes)"
done < <(sed -n 's/^try   //p' "$work/out0")
is "HTTP" ok "$(secure_curl "$http/livez")"
is "HTTP/1.1 is agreed on" 1.1 "$(secure_curl --http2 -w '%{http_version}' -o "$work/body" "$http/livez")"
is "admin" ok "$(secure_curl "https://127.0.0.1:$admin_port/livez")"
is "RESP" PONG "$(secure_redis ping)"
is "gRPC" SERVING "$("$python" - "$grpc_port" "$work/ca.pem" <<'PY' 2>&1 | tail -1
import sys
import grpc
port, ca = sys.argv[1], open(sys.argv[2], "rb").read()
channel = grpc.secure_channel("127.0.0.1:" + port, grpc.ssl_channel_credentials(ca))
check = channel.unary_unary("/grpc.health.v1.Health/Check")
print("SERVING" if check(b"", timeout=60) == b"\x08\x01" else "not")
PY
)"

# --- the commands ----------------------------------------------------------------------------------------------------
secure_admin=(--admin "https://127.0.0.1:$admin_port" --tls-ca "$work/ca.pem")
prints "weir rules" "last hit" weir rules list "${secure_admin[@]}"
prints "weir doctor" "certificate" weir doctor "${secure_admin[@]}"
prints "weir check" "allowed" \
  weir check --http "https://localhost:$http_port" --tls-ca "$work/ca.pem" --key a --limit 5/min
exits "without https://: exit code" 1 weir rules list --admin "127.0.0.1:$admin_port"
has "without https://" "this port speaks TLS; write --admin https://127.0.0.1:$admin_port" "$said"
prints "so for a check" "this port speaks TLS; write --http https://127.0.0.1:$http_port" \
  weir check --user 1 --http "127.0.0.1:$http_port"
prints "an authority that did not sign it" "the server's certificate is not trusted" \
  weir rules list "${secure_admin[@]:0:2}" --tls-ca "$work/other_ca.pem"
prints "no authority" "name its CA with --tls-ca FILE" weir rules list --admin "https://127.0.0.1:$admin_port"
certificate ca elsewhere 30 DNS:elsewhere
free_port elsewhere_port
openssl s_server -quiet -accept "$elsewhere_port" -cert "$work/elsewhere.pem" -key "$work/elsewhere.key" &>/dev/null &
elsewhere=$!
until_true 10 serial_at "$elsewhere_port" >/dev/null
prints "a certificate for another address" "the server's certificate is not trusted: IP address mismatch" \
  weir rules list --admin "https://127.0.0.1:$elsewhere_port" --tls-ca "$work/ca.pem"
prints "a certificate for another name" "the server's certificate is not trusted: hostname mismatch" \
  weir rules list --admin "https://localhost:$elsewhere_port" --tls-ca "$work/ca.pem"
kill "$elsewhere"
prints "no file of authorities" "--tls-ca $work/none.pem cannot be read: No such file or directory" \
  weir rules list "${secure_admin[@]:0:2}" --tls-ca "$work/none.pem"

# --- refused clients -------------------------------------------------------------------------------------------------
# hello PORT [OPTIONS]: how a handshake ends.
hello() {
  timeout 60 openssl s_client -connect "127.0.0.1:$1" -CAfile "$work/ca.pem" -verify_return_error "${@:2}" \
    </dev/null 2>&1
}
has "TLS 1.3" "TLSv1.3" "$(hello "$http_port" | grep -i '^New')"
has "TLS 1.2" "TLSv1.2" "$(hello "$http_port" -tls1_2 | grep -i '^New')"
for version in -tls1 -tls1_1; do
  has "$version is refused" "alert protocol version" "$(hello "$http_port" "$version" -cipher DEFAULT:@SECLEVEL=0)"
done
has "no cipher without forward secrecy" "handshake failure" "$(hello "$http_port" -tls1_2 -cipher AES128-GCM-SHA256)"
has "gRPC needs h2" "no application protocol" "$(hello "$grpc_port" -alpn http/1.1)"
is "gRPC needs it named" "" "$(hello "$grpc_port" -tls1_2 -quiet | grep -a SETTINGS)"
has "a browser's handshake is not a Redis client's" "no application protocol" "$(hello "$resp_port" -alpn http/1.1)"
has "h2 is not spoken on the HTTP port" "no application protocol" "$(hello "$http_port" -alpn h2)"
has "plain HTTP gets an error" "This port speaks TLS; write https://." \
  "$(curl -s -i -m 60 "http://127.0.0.1:$http_port/")"
has "a plain Redis client gets an error" "-ERR this port speaks TLS" "$(printf 'PING\r\n' | raw "$resp_port")"
is "plain HTTP/2 is closed" "" "$(printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' | raw "$grpc_port")"
is "garbage in a handshake is closed" "" "$(printf '\x16\x03\x01\x00\x05hello' | raw "$http_port" | tr -dc a-z)"

for why in "unsupported protocol" "no shared cipher" "no application protocol" "the client did not select h2 by ALPN" \
  "the client does not speak TLS"; do
  until_true 5 grep -q "TLS handshake failed.*$why" "$work/err0"
  has "the log at level debug knows why: $why" "$why" "$(grep "TLS handshake failed" "$work/err0")"
done

# --- the same answers as without TLS ---------------------------------------------------------------------------------
is "20,000 commands, 10,000 checks, and a client that takes its answers late" "equal" \
  "$("$python" "$(dirname "$0")/tls_equal.py" "$work/ca.pem" "$http_port" "$resp_port" 2>&1 | tail -1)"

# --- a renewal while connections are open ----------------------------------------------------------------------------
exec 8> >(timeout 60 openssl s_client -quiet -connect "127.0.0.1:$resp_port" >"$work/old" 2>/dev/null)
said_of_old() { [ "$(tr -d '\r\n' <"$work/old")" == "$1" ]; }
printf 'PING one\r\n' >&8
until_true 10 said_of_old '$3one'
is "a connection before the renewal" '$3one' "$(tr -d '\r\n' <"$work/old")"
before=$(serial_of "$work/server.pem")
is "the certificate that is shown" "$before" "$(serial_at "$http_port")"
certificate ca renewed
shows() { [ "$(serial_at "$1")" == "$2" ]; }
renewed=$(serial_of "$work/renewed.pem")
cp "$work/renewed.key" "$work/server.key"  # in two steps, as it happens
cp "$work/renewed.pem" "$work/server.pem"
until_true 10 shows "$http_port" "$renewed"
for port in "$http_port" "$grpc_port" "$resp_port" "$admin_port"; do
  is "renewed without a signal" "$renewed" "$(serial_at "$port")"
done
printf 'PING two\r\n' >&8
until_true 10 said_of_old '$3one$3two'
is "the connection from before goes on" '$3one$3two' "$(tr -d '\r\n' <"$work/old")"

cp "$work/nothing.pem" "$work/server.pem"
until_true 10 grep -q "certificate reload failed, keeping the previous one" "$work/err0"
has "an invalid certificate is logged" "server.pem has no certificate" "$(cat "$work/err0")"
is "and changes nothing" "$renewed" "$(serial_at "$http_port")"
certificate ca third
cp "$work/third.pem" "$work/server.pem"
cp "$work/third.key" "$work/server.key"
kill -HUP "$pid"
until_true 10 shows "$http_port" "$(serial_of "$work/third.pem")"
is "SIGHUP reads it at once" "$(serial_of "$work/third.pem")" "$(serial_at "$http_port")"

# --- the end ---------------------------------------------------------------------------------------------------------
printf 'PING three\r\n' >&8
until_true 10 said_of_old '$3one$3two$5three'
exec 9<>"/dev/tcp/127.0.0.1/$http_port"  # connected, and silent
ends_well "a drain with open TLS connections ends well"
is "and lost nothing" '$3one$3two$5three' "$(tr -d '\r\n' <"$work/old")"
exec 8>&- 9>&-

# --- certificates of clients -----------------------------------------------------------------------------------------
certificate ca server
mkdir "$work/first" "$work/second"
cp "$work/server.pem" "$work/server.key" "$work/first"
ln -s first "$work/live"
start_server --tls-cert "$work/live/server.pem" --tls-key "$work/live/server.key" --tls-client-ca "$work/ca.pem" \
  --tls http,resp
is "a client with a certificate" ok "$(secure_curl --cert "$work/client.pem" --key "$work/client.key" "$http/livez")"
is "a client without" "" "$(secure_curl "$http/livez")"
is "a client with another's" "" "$(secure_curl --cert "$work/stranger.pem" --key "$work/stranger.key" "$http/livez")"
is "a Redis client with a certificate" PONG "$(secure_redis --cert "$work/client.pem" --key "$work/client.key" ping)"
mine=(check --http "https://127.0.0.1:$http_port" --tls-ca "$work/ca.pem" --key a --limit 5/min)
prints "weir check with a certificate" "allowed" \
  weir "${mine[@]}" --tls-cert "$work/client.pem" --tls-key "$work/client.key"
prints "weir check without" "cannot query the server" weir "${mine[@]}"
prints "TLS where there is none" "if this server does not use TLS, write http:// before its address" \
  weir rules list --admin "https://127.0.0.1:$admin_port"
has "a Redis client without" "rror" "$(secure_redis ping)"
is "a listener without TLS is plain" ok "$(curl -s -m 60 "http://127.0.0.1:$admin_port/livez")"
has "the announcement tells that clients need one" "curl -ik --cert CLIENT.pem --key CLIENT.key https" \
  "$(cat "$work/out1")"
certificate ca swapped
cp "$work/swapped.pem" "$work/second/server.pem"
cp "$work/swapped.key" "$work/second/server.key"
ln -sfn second "$work/live"
until_true 10 shows "$http_port" "$(serial_of "$work/swapped.pem")"
is "a renewal by a link" "$(serial_of "$work/swapped.pem")" "$(serial_at "$http_port")"
finish
