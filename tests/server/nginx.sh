# The real nginx with the config of examples/nginx in front of an application: what its clients see. nginx alone needs
# another status for a denial. A client must see 429, never the 500 that nginx makes of it by default.
source "$(dirname "$0")/gateway.bash"
provide nginx

start_app
start_server --config "$(rules_of nginx)"
free_port front
place nginx "$front"

nginx_config error <<<"  include $work/nginx/weir.conf;" >"$work/nginx.conf"
run_nginx() { start_gateway "$front" "$nginx" -e "$work/err_nginx.log" -c "$work/nginx.conf"; }
run_nginx

# --- counts, headers, denials -----------------------------------------------------------------------------------------
limits_clients "nginx" "$front" 127.0.0.1 127.0.0.2
long=$(printf 'x%.0s' $(seq 7000))
answer=$(statuses 1 "$front" /a -H "A: $long" -H "B: $long" -H "C: $long" -H "D: $long")
is "a request too large for weir is not let past" yes "$([[ "$answer" =~ ^[45] ]] && echo yes || echo "no: $answer")"
is "what is skipped, is never denied" "200 200 200 200 200 200" "$(statuses 6 "$front" /health)"

# --- methods and bodies -----------------------------------------------------------------------------------------------
limits_posts "nginx" "$front" 127.0.0.3
from=(--interface 127.0.0.3)
is "a GET is another rule's" 200 "$(statuses 1 "$front" /api/login "${from[@]}")"
is "an encoded path is the same path" 429 "$(statuses 1 "$front" /api/%6cogin "${from[@]}" -d a=b)"
# What some server behind nginx reads as /api/login; see path_readers.sh.
for spelling in '/health#/../api/login' '//static/api/login' '//x/api/login' '/api/x//../../login' '/x\y/../api/login' \
  '/api/x/;/../../login' '/api/%5c/../login' '/api/login#' '/api%2flogin' '/api/login;x=1' \
  $'/api/login\xa0' '/api/login/..;/..;'; do
  is "$spelling is a login, too" 429 "$(statuses 1 "$front" / --request-target "$spelling" "${from[@]}" -d a=b)"
done
is "HEAD" 200 "$(statuses 1 "$front" / "${from[@]}" -I)"
answer=$(via "$front" /forbidden "${from[@]}")
has "the application's own 403 is left alone" "HTTP/1.1 403" "$answer"
has "with its body" "app GET /forbidden" "$answer"

# --- bans -------------------------------------------------------------------------------------------------------------
exits "a ban" 0 weir keys ban --ip 127.0.0.5 --reason scraper --admin ":$admin_port"
answer=$(via "$front" /a --interface 127.0.0.5)
has "who is banned gets 429" "HTTP/1.1 429" "$answer"
has "  and is not told to try again in no seconds" '"message":"You are blocked"' "$answer"
has "who is not, is told when" "Try again in" "$(via "$front" /api/login --interface 127.0.0.3 -d a=b)"

# --- connections are kept ---------------------------------------------------------------------------------------------
is "a connection to weir is used again" yes "$([ "$(connections_to "$http_port")" -le 4 ] && echo yes)"

# --- Weir unavailable -------------------------------------------------------------------------------------------------
is "weir frozen: a request passes in time" 200 "$(while_frozen "$front" /a)"
stop "$pid"
is "Weir unavailable: as shipped, requests pass" "200 200" "$(statuses 2 "$front" /a)"
has "and reach the application" "app GET /a" "$(via "$front" /a)"
stop "$gateway_pid"
sed -i -e '/proxy_intercept_errors on;/d' -e '/error_page 500 502 503 504/d' "$work/nginx/weir.conf"
run_nginx
is "without the two lines, they do not" "500 500" "$(statuses 2 "$front" /a)"
finish
