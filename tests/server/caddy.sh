# The real Caddy with the config of examples/caddy in front of an application: what its clients see. Both ways that the
# config shows: the long one, which shows clients what is left, and forward_auth.
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
limits_clients "the long way" "$long" 127.0.0.1 127.0.0.2
stops_long_urls "the long way" "$long" 127.0.0.1 7000 9000 33000 60000
printf 'X-Long: %0100000d' 0 >"$work/long.txt"
answer=$(statuses 10 "$long" /a -H "@$work/long.txt")
is "nor a long header" "" "$(tr ' ' '\n' <<<"$answer" | grep -v '^4')"
answer=$(via "$long" '/health?user=x&path=/a')
has "what is skipped passes, whatever its query" "app GET /health?user=x&path=/a" "$answer"

limits_posts "the long way" "$long" 127.0.0.3
has "the application's own errors are left alone" "HTTP/1.1 403" "$(via "$long" /forbidden --interface 127.0.0.3)"
is "a connection to weir is used again" yes "$([ "$(connections_to "$http_port")" -le 4 ] && echo yes)"

# --- a queue ----------------------------------------------------------------------------------------------------------
# Weir delays an answer for less time than Caddy waits. Of 20 requests at once, a few get their turn within that time.
# The others are denied. With the default of 5 s for hold_max, all would pass, because Caddy stops waiting.
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

# --- Weir unavailable -------------------------------------------------------------------------------------------------
is "weir frozen: a request passes in time" 200 "$(while_frozen "$long" /a)"
stop "$pid"
has "Weir unavailable: the long way lets requests pass" "app POST /a 7" "$(via "$long" /a -d user=me)"
is "and again" "200 200" "$(statuses 2 "$long" /a)"
is "the short one does not" "502 502" "$(statuses 2 "$short" /a)"
finish
