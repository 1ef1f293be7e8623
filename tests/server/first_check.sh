# The first minutes with a server: curl and redis-cli as the README shows them. The limits refill so slowly that a slow
# machine sees the same answers. redis_clients.sh has more of redis-cli, threads.sh has many clients at one limit.
source "$(dirname "$0")/lib.bash"
start_server

answer=$(post '{"key":"job:7","limit":"10/s burst 50","algorithm":"token_bucket","cost":1}')
has "the first check passes" "HTTP/1.1 200 OK" "$answer"
has "its body says so" '{"allowed":true,"limit":50,"remaining":49,"reset_after":0.1,' "$answer"
has "and the rest of the body" ',"retry_after":0,"delay":0}' "$answer"
has "X-RateLimit-Limit" "X-RateLimit-Limit: 50" "$answer"
has "X-RateLimit-Remaining" "X-RateLimit-Remaining: 49" "$answer"
has "RateLimit-Policy" 'RateLimit-Policy: "default";q=50;w=5' "$answer"
has "RateLimit" 'RateLimit: "default";r=49;t=1' "$answer"
reset=$(awk '/^X-RateLimit-Reset/{print $2}' <<<"$answer")
now=$(date +%s)
is "X-RateLimit-Reset is a Unix time, about now" yes \
  "$([ "$reset" -ge $((now - 30)) ] && [ "$reset" -le $((now + 31)) ] && echo yes)"

once='{"key":"once","limit":"1/day","algorithm":"sliding_log"}'
has "one a day: the first passes" "HTTP/1.1 200 OK" "$(post "$once")"
answer=$(post "$once")
has "one a day: the second does not" "HTTP/1.1 429 Too Many Requests" "$answer"
has "a denial is a problem document" "Content-Type: application/problem+json" "$answer"
has "with a type" '"type":"https://iana.org/assignments/http-problem-types#quota-exceeded"' "$answer"
has "an error" '"error":"Rate limit exceeded"' "$answer"
has "and a message" '"message":"Try again in ' "$answer"
has "Retry-After in whole seconds" "Retry-After: 86" "$answer"
answer=$(post '{"key":"big","limit":"10/s","cost":11}')
has "a request that can never pass has no retry_after" '"retry_after":null' "$answer"
is "and has no Retry-After" "" "$(grep -i '^retry-after' <<<"$answer")"

is "PING" PONG "$(redis ping)"
is "PING with a message" "hello world" "$(redis ping 'hello world')"
has "HELLO 3" "server weir version" "$(redis -3 hello 3)"
is "CL.THROTTLE user123 15 30 60" "0 16 15 -1 2" "$(redis cl.throttle user123 15 30 60)"
is "CL.THROTTLE with one permit" "0 1 0 -1 2000" "$(redis cl.throttle single 0 1 2000)"
has "and the next is limited" "1 1 0 " "$(redis cl.throttle single 0 1 2000)"
has "redis-cli, if interactive, asks for COMMAND DOCS" cl.throttle \
  "$(printf 'COMMAND DOCS\r\nQUIT\r\n' | raw "$resp_port")"

is "GET / says what this is" yes "$(curl -s -m 60 "$http/" | grep -q 'v1/check' && echo yes)"
is "keep-alive: two answers on one connection" "200 1 200 0" \
  "$(curl -s -m 60 -o /dev/null -o /dev/null -w '%{http_code} %{num_connects}\n' "$http/livez" "$http/livez" |
    paste -sd' ')"
requests='GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n'
requests+='GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
is "HTTP pipelining is answered in order" "200 404 200" \
  "$(printf "$requests" | raw "$http_port" | awk '/^HTTP\/1.1/{print $2}' | paste -sd' ')"
has "Expect: 100-continue" "HTTP/1.1 100 Continue" "$(post "$once" -H 'Expect: 100-continue')"
finish
