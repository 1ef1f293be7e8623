# Bad input of every kind, on both ports: each gets a clear error, and the server goes on. At the end the server uses no
# more memory than before. crossed.sh sends random bytes.
source "$(dirname "$0")/lib.bash"
start_server --drain-delay 0
head -c 1048576 /dev/zero | tr '\0' 'k' >"$work/mebibyte"
still_answers "at first"

code() { head -1 <<<"$1" | cut -d' ' -f2; }
# bad BODY PART: a 400, a problem document, and this in it.
bad() {
  local answer
  answer=$(post "$1")
  is "400 for ${1:0:70}" 400 "$(code "$answer")"
  has "  as a problem document" "application/problem+json" "$answer"
  has "  that helps" "$2" "$answer"
}
bad '{"key":"","limit":"1/s"}' 'the key is empty'
bad '{"key":"u","limit":"1/s","cost":9007199254740993}' '2^53'
bad '{"key":"u","limit":"1/s","cost":-99999999999999999999}' '2^53'
bad '{"key":"u","limit":"1/s","cost":1.5}' 'a whole number'
bad '{"key":"u","limit":"a lot"}' 'limit'
bad '{"key":"u","limit":"100/minuet"}' 'did you mean 100/minute?'
bad '{"key":"u","limit":"1/s","algorithm":"magic"}' 'algorithm'
bad '{"key":"u","limt":"1/s"}' 'did you mean \"limit\"?'
bad '{"key":"u","limit":"1/s","key":"v"}' 'given twice'
bad '{"key":"u","limit":"20 concurrent"}' 'needs POST /v1/acquire'
bad '[]' 'must be an object'
bad '{"key":' 'not JSON'
bad '' 'the body is empty'
printf '{"key":"%s","limit":"1/s"}' "$(head -c 1000000 "$work/mebibyte")" >"$work/long_key"
has "a key of a million bytes" "the key has 1000000 bytes" "$(post "@$work/long_key")"
answer=$(post "@$work/mebibyte" -H 'Content-Type: text/plain')
is "a mebibyte of nonsense" 400 "$(code "$answer")"
cat "$work/mebibyte" "$work/mebibyte" >"$work/two_mebibytes"
is "a body beyond the bound" 413 "$(code "$(post "@$work/two_mebibytes" -H 'Expect:')")"
answer=$(curl -s -i -m 60 "$http/" -H "X-Long: $(head -c 40000 "$work/mebibyte")")
is "a header beyond the bound" 431 "$(code "$answer")"
answer=$(curl -s -i -m 60 "$http/v1/check" | tr -d '\r')
is "GET on a check" 405 "$(code "$answer")"
has "  names what is allowed" "Allow: POST" "$answer"
is "an unknown path" 404 "$(code "$(curl -s -i -m 60 "$http/v1/chek")")"

has "CL.THROTTLE without arguments" "ERR Cell error: Usage: cl.throttle" "$(redis cl.throttle)"
has "an empty key" "ERR the key is empty" "$(redis cl.throttle '' 1 1 1)"
has "a quantity beyond 2^53" "2^53" "$(redis cl.throttle u 1 1 1 9007199254740993)"
has "words for numbers" "ERR Cell error: Couldn't parse as integer: x" "$(redis cl.throttle u x 1 1)"
has "a rate of nothing" "ERR Cell error: Zero rates are not supported" "$(redis cl.throttle u 1 0 1)"
has "an impossible rate" "ERR " "$(redis cl.throttle u 1 1099511627776 1)"
huge_key() {
  printf '*5\r\n$11\r\nCL.THROTTLE\r\n$1048576\r\n'
  cat "$work/mebibyte"
  printf '\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\nQUIT\r\n'
}
has "a key of a mebibyte" "ERR the key has 1048576 bytes" "$(huge_key | raw "$resp_port")"
has "an unknown command" "ERR unknown command 'flushall', with args beginning with: 'now'" "$(redis flushall now)"
is "a wrong number of arguments" "ERR wrong number of arguments for 'echo' command" "$(redis echo)"

# told PORT PART BYTES NAME: the answer to these bytes contains PART, and then the server closes the connection.
told() {
  local answer
  answer=$(printf "$3" | raw "$1")
  has "${3:0:40} on port of ${4}" "$2" "$answer"
}
told "$resp_port" "Protocol error: invalid multibulk length" '*x\r\n' RESP
told "$resp_port" "Protocol error: expected '\$', got ':'" '*1\r\n:1\r\n' RESP
told "$resp_port" "Protocol error: invalid bulk length" '*1\r\n$-1\r\n' RESP
told "$resp_port" "Protocol error: invalid bulk length" '*1\r\n$999999999999\r\n' RESP
told "$resp_port" "Protocol error: unbalanced quotes" 'ECHO "a\r\n' RESP
told "$resp_port" "this looks like TLS" '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' RESP
told "$http_port" "this looks like TLS" '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' HTTP
told "$http_port" "this looks like RESP" '*1\r\n$4\r\nPING\r\n' HTTP
told "$http_port" "this looks like RESP" 'PING\r\n' HTTP
told "$http_port" "HTTP/1.1 400" 'GET\r\n\r\n' HTTP
is "HTTP on the RESP port is dropped" "" "$(printf 'POST / HTTP/1.1\r\nHost: x\r\n\r\n' | raw "$resp_port")"
has "a line without end" "too big inline request" "$(head -c 70000 "$work/mebibyte" | raw "$resp_port")"
curl -s -m 60 "http://127.0.0.1:$resp_port/v1/check" -d '{}' >/dev/null
is "curl on the RESP port gets an empty reply" 52 $?
still_answers "after strangers"

# All of these have been sent before, so what is allocated once is allocated.
before=$(rss_kib "$pid")
for _ in $(seq 10); do
  post "@$work/long_key" >/dev/null
  head -c 70000 "$work/mebibyte" | raw "$resp_port" >/dev/null
done
at_most "KiB more after ten times as much" $(($(rss_kib "$pid") - before)) 4096
still_answers "after large input"
is "the log is empty" "" "$(cat "$work"/err*)"
ends_well "and it ends well"
finish
