# The real nginx with the config of examples/nginx in front of an application: what its clients see.
# It alone needs another status for a denial: a client must see 429, and never the 500 that nginx makes of it by itself.
source "$(dirname "$0")/lib.bash"
source "$(dirname "$0")/gateway.bash"
provide nginx

start_app
start_server --config "$(rules_of nginx)"
free_port front
place nginx "$front"

# Debian's own nginx.conf, as far as it matters, with all that is written in the test's folder.
cat >"$work/nginx.conf" <<CONF
daemon off;
$([ "$EUID" == 0 ] && echo 'user root;')
pid $work/nginx.pid;
error_log $work/err_nginx.log;
events { }
http {
  access_log off;
  client_body_temp_path $work/body;
  proxy_temp_path $work/proxy;
  fastcgi_temp_path $work/fastcgi;
  uwsgi_temp_path $work/uwsgi;
  scgi_temp_path $work/scgi;
  include $work/nginx/weir.conf;
}
CONF
run_nginx() { start_gateway "$front" "$nginx" -e "$work/err_nginx.log" -c "$work/nginx.conf"; }
run_nginx

# --- counted, told, denied --------------------------------------------------------------------------------------------
passed "the first" "$(via "$front" /a)" 5 4
is "five pass, then 429 and never 500" "200 200 200 200 429 429 429" "$(statuses 7 "$front" /a)"
limited "denied" "$(via "$front" /a)" 5
is "another address is another client" "200 200 200 200 200 429" "$(statuses 6 "$front" /a --interface 127.0.0.2)"
is "nobody claims another address" 429 "$(statuses 1 "$front" /a -H 'X-Forwarded-For: 192.0.2.7')"
is "the query is no part of the path" 429 "$(statuses 1 "$front" '/a?b=c')"
long=$(printf 'x%.0s' $(seq 7000))
answer=$(statuses 1 "$front" /a -H "A: $long" -H "B: $long" -H "C: $long" -H "D: $long")
is "a request too large for weir is not let past" yes "$([[ "$answer" =~ ^[45] ]] && echo yes || echo "no: $answer")"
is "what is skipped, is never denied" "200 200 200 200 200 200" "$(statuses 6 "$front" /health)"

# --- methods and bodies -----------------------------------------------------------------------------------------------
from=(--interface 127.0.0.3)
head -c 300000 /dev/zero | tr '\0' x >"$work/body.txt"
answer=$(via "$front" /api/login "${from[@]}" -d user=me)
passed "a POST" "$answer" 3 2
has "its body reaches the application" "app POST /api/login 7" "$answer"
has "a large body, too" "app POST /api/login 300000" \
  "$(via "$front" /api/login "${from[@]}" --data-binary "@$work/body.txt")"
has "and one in chunks" "app POST /api/login 300000" \
  "$(via "$front" /api/login "${from[@]}" -H 'Transfer-Encoding: chunked' --data-binary "@$work/body.txt")"
limited "the fourth POST" "$(via "$front" /api/login "${from[@]}" -d user=me)" 3
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

# --- connections are kept ---------------------------------------------------------------------------------------------
is "a connection to weir is used again" yes "$([ "$(connections_to "$http_port")" -le 4 ] && echo yes)"

# --- weir away --------------------------------------------------------------------------------------------------------
is "weir frozen: a request passes in time" 200 "$(while_frozen "$front" /a)"
stop "$pid"
is "weir away: as shipped, requests pass" "200 200" "$(statuses 2 "$front" /a)"
has "and reach the application" "app GET /a" "$(via "$front" /a)"
stop "$gateway_pid"
sed -i -e '/proxy_intercept_errors on;/d' -e '/error_page 500 502 503 504/d' "$work/nginx/weir.conf"
run_nginx
is "without the two lines, they do not" "500 500" "$(statuses 2 "$front" /a)"
finish
