# The config of examples/traefik, without Traefik. The test reads it as YAML and sends the requests that Traefik 3 sends
# to the address in it.
source "$(dirname "$0")/gateway.bash"

start_app
start_server --config "$(rules_of traefik)"
free_port front
place traefik "$front"

read -r address trust headers < <("$python" - "$work/traefik/dynamic.yml" <<'PY'
import sys, yaml
http = yaml.safe_load(open(sys.argv[1]))["http"]
router = http["routers"]["app"]
assert set(http) == {"routers", "middlewares", "services"} and router["service"] in http["services"]
auth = http["middlewares"][router["middlewares"][0]]["forwardAuth"]
assert set(auth) <= {"address", "trustForwardHeader", "authRequestHeaders", "authResponseHeaders"}
print(auth["address"], auth["trustForwardHeader"], ",".join(auth["authRequestHeaders"]))
PY
)
is "the config names Weir, and trusts no client" "http://127.0.0.1:$http_port/auth False Authorization,X-Api-Key" \
  "$address $trust $headers"

# ask METHOD URI CLIENT: as Traefik does, always by GET and without a query of its own.
ask() {
  curl -s -i -m 60 "$address" -H 'User-Agent: Go-http-client/1.1' -H 'Accept-Encoding: gzip' -H 'Accept:' \
    -H "X-Forwarded-For: $3" -H 'X-Forwarded-Host: shop.example:8000' -H "X-Forwarded-Method: $1" \
    -H 'X-Forwarded-Port: 8000' -H 'X-Forwarded-Proto: http' -H 'X-Forwarded-Server: edge' \
    -H "X-Forwarded-Uri: $2" -H "X-Real-Ip: $3" | tr -d '\r' | sed -E 's/^([A-Za-z][A-Za-z-]*): /\L\1: /'
}
asked() { ask "$@" | sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p'; }

is "five pass, then 429" "200 200 200 200 200 429" \
  "$(for _ in 1 2 3 4 5 6; do asked GET '/a?b=c' 192.0.2.1; done | paste -sd' ')"
limited "denied" "$(ask GET '/a?b=c' 192.0.2.1)" 5
is "another address is another client" 200 "$(asked GET /a 192.0.2.2)"
is "three POSTs to /api/login pass" "200 200 200 429" \
  "$(for _ in 1 2 3 4; do asked POST '/api/login?next=%2F' 192.0.2.3; done | paste -sd' ')"
is "what is skipped, is never denied" 200 "$(asked GET /health 192.0.2.1)"
answer=$(ask GET /a 192.0.2.4)
is "what passes has no body" "" "$(sed '1,/^$/d' <<<"$answer")"
is "and says what is left" 4 "$(header x-ratelimit-remaining "$answer")"
finish
