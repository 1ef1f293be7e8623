# The real HAProxy with the config of examples/haproxy in front of an application: what its clients see. The Lua action
# queries Weir through HAProxy itself, so this also tests its connections and timeouts.
source "$(dirname "$0")/gateway.bash"
provide haproxy

start_app
start_server --config "$(rules_of haproxy)"
free_port front to_weir
place haproxy "$front" "$to_weir"
run_haproxy() { start_gateway "$front" env -C "$work/haproxy" "$haproxy" -db -f haproxy.cfg; }
run_haproxy

# --- counts, headers, denials -----------------------------------------------------------------------------------------
limits_clients "HAProxy" "$front" 127.0.0.1 127.0.0.2
is "what is skipped, is never denied" "200 200 200 200 200 200" "$(statuses 6 "$front" /health)"

# A long URL is refused by HAProxy or Weir, or counted as any other; it never passes for its length.
stops_long_urls "HAProxy" "$front" 127.0.0.1 7000 9000 12000 14500 15000 15300 16000 33000 40000

# --- methods and bodies -----------------------------------------------------------------------------------------------
limits_posts "HAProxy" "$front" 127.0.0.3
has "the application's own errors are left alone" "HTTP/1.1 403" "$(via "$front" /forbidden --interface 127.0.0.3)"

# --- weir refuses -----------------------------------------------------------------------------------------------------
stop "$gateway_pid"
sed -i '/WEIR_URL/s#/auth#/none#' "$work/haproxy/haproxy.cfg"
run_haproxy
is "what weir answers with another 4xx is not let past" "404 404" "$(statuses 2 "$front" /b --interface 127.0.0.9)"
stop "$gateway_pid"
sed -i '/WEIR_URL/s#/none#/auth#' "$work/haproxy/haproxy.cfg"
run_haproxy

# --- Weir unavailable -------------------------------------------------------------------------------------------------
is "weir frozen: a request passes in time" 200 "$(while_frozen "$front" /a)"
stop "$pid"
is "Weir unavailable: as shipped, requests pass" "200 200" "$(statuses 2 "$front" /a)"
has "and reach the application" "app POST /a 7" "$(via "$front" /a -d user=me)"
stop "$gateway_pid"
sed -i 's/WEIR_DOWN open/WEIR_DOWN closed/' "$work/haproxy/haproxy.cfg"
run_haproxy
is "with \`closed\`, they do not" "503 503" "$(statuses 2 "$front" /a)"
finish
