# The real Caddy with the config of examples/caddy in front of an application: what its clients see.
# Both ways that the config shows: the long one, which tells clients what is left, and forward_auth.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/gateway.bash"
provide caddy

start_app
cp "$(rules_of caddy)" "$work/weir.yaml"
echo '  - {name: queue, match: {path: /queue}, per: ip, limit: 10/s burst 50, algorithm: leaky_bucket}' \
  >>"$work/weir.yaml"
start_server --config "$work/weir.yaml"
free_port long short
place caddy "$long" "$short"
HOME=$work XDG_DATA_HOME=$work XDG_CONFIG_HOME=$work \
  start_gateway "$long" "$caddy" run --config "$work/caddy/Caddyfile" --adapter caddyfile

# --- the long way -----------------------------------------------------------------------------------------------------
passed "the first" "$(via "$long" /a)" 5 4
is "five pass, then 429" "200 200 200 200 429 429" "$(statuses 6 "$long" /a)"
limited "denied" "$(via "$long" /a)" 5
is "another address is another client" "200 200 200 200 200 429" "$(statuses 6 "$long" /a --interface 127.0.0.2)"
is "nobody claims another address" 429 "$(statuses 1 "$long" /a -H 'X-Forwarded-For: 192.0.2.7')"
is "nor another path" 429 "$(statuses 1 "$long" /a -H 'X-Forwarded-Uri: /health' -H 'X-Forwarded-Method: OPTIONS')"
for length in 7000 9000 33000 60000; do
  answer=$(statuses 1 "$long" "/$(printf 'x%.0s' $(seq "$length"))")
  is "a URL of $length bytes is not let past" yes "$([[ "$answer" =~ ^4 ]] && echo yes || echo "no: $answer")"
done
printf 'X-Long: %0100000d' 0 >"$work/long.txt"
answer=$(statuses 10 "$long" /a -H "@$work/long.txt")
is "nor a long header" "" "$(tr ' ' '\n' <<<"$answer" | grep -v '^4')"
answer=$(via "$long" '/health?user=x&path=/a')
has "what is skipped passes, whatever its query" "app GET /health?user=x&path=/a" "$answer"

from=(--interface 127.0.0.3)
answer=$(via "$long" '/api/login?next=%2F' "${from[@]}" -d user=me)
passed "a POST with a query, which Caddy appends to ours" "$answer" 3 2
has "its body reaches the application" "app POST /api/login?next=%2F 7" "$answer"
head -c 300000 /dev/zero | tr '\0' x >"$work/body.txt"
has "a large body, too" "app POST /api/login 300000" \
  "$(via "$long" /api/login "${from[@]}" --data-binary "@$work/body.txt")"
has "and one in chunks" "app POST /api/login 300000" \
  "$(via "$long" /api/login "${from[@]}" -H 'Transfer-Encoding: chunked' --data-binary "@$work/body.txt")"
limited "the fourth POST" "$(via "$long" /api/login "${from[@]}" -d user=me)" 3
has "the application's own errors are left alone" "HTTP/1.1 403" "$(via "$long" /forbidden "${from[@]}")"
is "a connection to weir is used again" yes "$([ "$(connections_to "$http_port")" -le 4 ] && echo yes)"

# --- a queue ----------------------------------------------------------------------------------------------------------
# Weir holds an answer back for less long than Caddy waits for it. Of 20 at once a few have their turn within that time.
# The others are denied, and none passes because Caddy gave up; all would, with the 5 s that Weir holds by default.
burst=$(curl -s -Z --parallel-max 20 -m 60 -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$long/queue?[1-20]")
passes=$(grep -c '^200$' <<<"$burst") denials=$(grep -c '^429$' <<<"$burst")
is "a burst on a queue: each is passed or denied" 20 $((passes + denials))
is "a burst on a queue: most are denied" yes "$([ "$denials" -ge 10 ] && echo yes || echo "no: $denials of 20")"
is "a burst on a queue: some have their turn" yes "$([ "$passes" -ge 1 ] && echo yes || echo no)"

# --- the short way ----------------------------------------------------------------------------------------------------
from=(--interface 127.0.0.4)
is "forward_auth: five pass, then 429" "200 200 200 200 200 429" "$(statuses 6 "$short" '/a?y=1' "${from[@]}")"
limited "forward_auth, denied" "$(via "$short" '/a?y=1' "${from[@]}")" 5
has "forward_auth: a POST" "app POST /api/login?y=1 7" "$(via "$short" '/api/login?y=1' "${from[@]}" -d user=me)"

# --- weir away --------------------------------------------------------------------------------------------------------
is "weir frozen: a request passes in time" 200 "$(while_frozen "$long" /a)"
stop "$pid"
has "weir away: the long way lets pass" "app POST /a 7" "$(via "$long" /a -d user=me)"
is "and again" "200 200" "$(statuses 2 "$long" /a)"
is "the short one does not" "502 502" "$(statuses 2 "$short" /a)"
finish
