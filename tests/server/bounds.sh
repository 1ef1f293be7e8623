# What one client may take from the others: memory, connections, time of the loop. The test reaches each bound. The
# client that reaches it gets an error that says so, and all others are served.
source "$(dirname "$0")/lib.bash"
start_server --connections 20 --buffers 4

# connect PORT: opens a connection, whose number is left in `socket`.
connect() { exec {socket}<>"/dev/tcp/127.0.0.1/$1"; }
grown_kib() { echo $(($(rss_kib "$pid") - $1)); }

# Chunk extensions and trailers without end: 32 MiB of each are sent, and almost none of it is kept.
endless() {
  printf 'POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
  printf "$1"
  head -c 33554432 /dev/zero | tr '\0' 'y'
}
before=$(rss_kib "$pid")
for begun in '1;a=' '0\r\nX-T: '; do
  connect "$http_port"
  endless "$begun" >&"$socket" 2>/dev/null &
  answer=$(timeout 60 cat <&"$socket" | tr -d '\r')
  exec {socket}>&-
  wait $!
  has "without end, $begun: 431" "HTTP/1.1 431" "$answer"
done
grown=$(grown_kib "$before")
is "and not kept ($grown KiB)" yes "$([ "$grown" -lt 8192 ] && echo yes)"
still_answers "after chunks"

# A coding that a proxy may read otherwise ends the connection: what follows is not taken for a request.
smuggled='POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n'
is "nothing is smuggled in" "400" \
  "$(printf "$smuggled" | raw "$http_port" | awk '/^HTTP\/1.1/{print $2}' | paste -sd' ')"

# Names that would be kept for as long as their client is idle.
name=$(head -c 60000 /dev/zero | tr '\0' 'n')
has "a long client name" "ERR Client names have at most 64 bytes; this one has 60000" "$(redis client setname "$name")"
has "by HELLO" "ERR Client names have at most 64 bytes" "$(redis hello 2 setname "$name")"
is "a short one" OK "$(redis client setname web-1)"

# Half-sent bulks: 4 MiB are allowed for all. Clients beyond that get an error; small requests are always accepted.
half_bulk() {
  printf '*2\r\n$4\r\nECHO\r\n$1000000\r\n'
  head -c 900000 /dev/zero | tr '\0' 'x'
}
half_bulk >"$work/half_bulk"
before=$(rss_kib "$pid")
for i in $(seq 12); do
  connect "$resp_port"
  hoard[i]=$socket
  cat "$work/half_bulk" >&"$socket" 2>/dev/null &
done
is_refused() { # whether one of the clients got an error
  local i line
  for i in $(seq 12); do
    [ -n "${hoard[i]}" ] && IFS= read -r -t 0.01 -u "${hoard[i]}" line && told=$line && return
  done
  return 1
}
told=
until_true 10 is_refused
is "a client that sends half a bulk gets an error" \
  "-ERR all connections together have reached the memory limit; retry shortly" "${told%$'\r'}"
still_answers "while memory is hoarded"
has "a check has room" "HTTP/1.1 200 OK" "$(post '{"key":"u","limit":"9/year"}')"
grown=$(grown_kib "$before")
is "hoarding is bounded ($grown KiB)" yes "$([ "$grown" -lt 16384 ] && echo yes)"
wait $(jobs -p | grep -vx "$pid")
close_all "${hoard[@]}"
whole_bulk() {
  cat "$work/half_bulk"
  head -c 100000 "$work/half_bulk"
  printf '\r\nQUIT\r\n'
}
has_room() { [ "$(whole_bulk | raw "$resp_port" | wc -c)" -gt 1000000 ]; }
eventually "and when they leave, there is room again" has_room

# As many connections as may be, on one port: the other port does not notice.
# fill PORT REQUEST: twenty connections, each with one answer. The last answer is left in `line`.
idle=()
fill() {
  for _ in $(seq 20); do
    connect "$1"
    idle+=("$socket")
    printf "$2" >&"$socket"
    IFS= read -r -t 60 -u "$socket" line
  done
}
fill "$resp_port" 'PING\r\n'
is "the last of 20 is served" "+PONG" "${line%$'\r'}"
has "the next connection gets an error" "max number of clients reached" "$(raw "$resp_port" </dev/null)"
is "HTTP has its own" ok "$(curl -s -m 60 "$http/livez")"
fill "$http_port" 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'
has "the last of 20 on HTTP is served" "200 OK" "$line"
answer=$(post '{"key":"u","limit":"9/year"}')
has "the next connection gets an error" "HTTP/1.1 503 Service Unavailable" "$answer"
has "  in a problem document" "application/problem+json" "$answer"
has "  that helps" "too many connections are open; retry shortly" "$answer"
close_all "${idle[@]}"
recovers() { [ "$(redis ping)" == PONG ] && [ "$(curl -s -m 60 "$http/livez")" == ok ]; }
eventually "when they leave, there is room again" recovers
is "the log is empty" "" "$(cat "$work"/err*)"
finish
