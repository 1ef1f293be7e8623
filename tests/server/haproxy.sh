# The real HAProxy with the config of examples/haproxy in front of an application: what its clients see.
# The Lua action asks through HAProxy itself; so what is tested is also that its connections and time-outs hold.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/gateway.bash"
provide haproxy

start_app
start_server --config "$(rules_of haproxy)"
free_port front to_weir
place haproxy "$front" "$to_weir"
run_haproxy() { start_gateway "$front" env -C "$work/haproxy" "$haproxy" -db -f haproxy.cfg; }
run_haproxy

# --- counted, told, denied --------------------------------------------------------------------------------------------
passed "the first" "$(via "$front" /a)" 5 4
is "five pass, then 429" "200 200 200 200 429 429" "$(statuses 6 "$front" /a)"
limited "denied" "$(via "$front" /a)" 5
is "another address is another client" "200 200 200 200 200 429" "$(statuses 6 "$front" /a --interface 127.0.0.2)"
is "nobody claims another address" 429 "$(statuses 1 "$front" /a -H 'X-Forwarded-For: 192.0.2.7')"
is "nor another path" 429 "$(statuses 1 "$front" /a -H 'X-Forwarded-Uri: /health' -H 'X-Forwarded-Method: OPTIONS')"
is "the query is no part of the path" 429 "$(statuses 1 "$front" '/a?b=c')"
is "what is skipped, is never denied" "200 200 200 200 200 200" "$(statuses 6 "$front" /health)"

# A long URL is refused by HAProxy or Weir, or counted as any other; it never passes for its length.
for length in 7000 9000 12000 14500 15000 15300 16000 33000 40000; do
  long=$(printf 'x%.0s' $(seq "$length"))
  status=$(statuses 1 "$front" "/$long")
  is "a URL of $length bytes is not let past" yes "$([[ "$status" =~ ^4 ]] && echo yes || echo "no: $status")"
done

# --- methods and bodies -----------------------------------------------------------------------------------------------
from=(--interface 127.0.0.3)
answer=$(via "$front" '/api/login?next=%2F' "${from[@]}" -d user=me)
passed "a POST" "$answer" 3 2
has "its body reaches the application" "app POST /api/login?next=%2F 7" "$answer"
head -c 300000 /dev/zero | tr '\0' x >"$work/body.txt"
has "a large body, too" "app POST /api/login 300000" \
  "$(via "$front" /api/login "${from[@]}" --data-binary "@$work/body.txt")"
has "and one in chunks" "app POST /api/login 300000" \
  "$(via "$front" /api/login "${from[@]}" -H 'Transfer-Encoding: chunked' --data-binary "@$work/body.txt")"
limited "the fourth POST" "$(via "$front" /api/login "${from[@]}" -d user=me)" 3
has "the application's own errors are left alone" "HTTP/1.1 403" "$(via "$front" /forbidden "${from[@]}")"

# --- weir refuses -----------------------------------------------------------------------------------------------------
stop "$gateway_pid"
sed -i '/WEIR_URL/s#/auth#/none#' "$work/haproxy/haproxy.cfg"
run_haproxy
is "what weir answers with another 4xx is not let past" "404 404" "$(statuses 2 "$front" /b --interface 127.0.0.9)"
stop "$gateway_pid"
sed -i '/WEIR_URL/s#/none#/auth#' "$work/haproxy/haproxy.cfg"
run_haproxy

# --- weir away --------------------------------------------------------------------------------------------------------
is "weir frozen: a request passes in time" 200 "$(while_frozen "$front" /a)"
stop "$pid"
is "weir away: as shipped, requests pass" "200 200" "$(statuses 2 "$front" /a)"
has "and reach the application" "app POST /a 7" "$(via "$front" /a -d user=me)"
stop "$gateway_pid"
sed -i 's/WEIR_DOWN open/WEIR_DOWN closed/' "$work/haproxy/haproxy.cfg"
run_haproxy
is "with \`closed\`, they do not" "503 503" "$(statuses 2 "$front" /a)"
finish
