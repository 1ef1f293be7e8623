# What a denial shows a client: the limit that denies it and no other rule, in the body and in the headers, on every
# listener. A response that passes says no more. `answers: {limits: all}` lists all limits.
source "$(dirname "$0")/lib.bash"
rules() {
  cat <<YAML
answers: {$1}
rules:
  - {name: secret-global, per: global, limit: 1000/year}
  - {name: secret-empty, per: 'header:x-team', limit: 2/year}
  - {name: login, match: {path: /login}, per: ip, limits: [2/year, 77/hour]}
YAML
}
# seen NAME ANSWER: which limits an answer names.
seen() { grep -oE '(secret-[a-z]+|login): [0-9]+/[a-z]+|"rule":"[a-z-]+","limit_text":"[^"]*"' <<<"$1" |
  sed -E 's/"rule":"(.*)","limit_text":"(.*)"/\1: \2/' | sort -u | paste -sd,; }
auth() { curl -s -i -m 60 "$http/auth" -H 'X-Forwarded-Uri: /login' -H "X-Forwarded-For: $1" -H 'x-team: a'; }
check() { post "{\"path\":\"/login\",\"ip\":\"$1\",\"headers\":{\"x-team\":\"$1\"}}" "${@:2}"; }
reserve() {
  curl -s -i -m 60 "$http/v1/reserve" -d "{\"path\":\"/login\",\"ip\":\"$1\",\"headers\":{\"x-team\":\"$1\"}}"
}
headers() { sed '/^\r*$/q' <<<"$1"; }
all="login: 2/year,login: 77/hour,secret-empty: 2/year,secret-global: 1000/year"

rules 'hold_max: 1s' >"$work/weir.yaml"
start_server --config "$work/weir.yaml"
first=$(auth 192.0.2.1)
has "forward-auth: it passes" "HTTP/1.1 200" "$first"
is "and shows one limit" "secret-empty: 2/year" "$(seen "$first")"
auth 192.0.2.1 >/dev/null
denied=$(auth 192.0.2.1)
has "forward-auth: denied" "HTTP/1.1 429" "$denied"
is "it names only the limit that denies" 1 "$(seen "$denied" | tr ',' '\n' | wc -l)"
is "and is a problem that programs can read" yes \
  "$(tail -n1 <<<"$denied" | "$python" -c 'import json, sys
d = json.load(sys.stdin); assert len(d["limits"]) == len(d["violated-policies"]) == 1; print("yes")')"
for _ in 1 2; do check 192.0.2.2 >/dev/null; done
denied=$(check 192.0.2.2)
has "POST /v1/check: denied" "HTTP/1.1 429" "$denied"
is "it names only the limit that denies" 1 "$(seen "$denied" | tr ',' '\n' | wc -l)"
denied=$(reserve 192.0.2.2)
has "POST /v1/reserve: denied" "HTTP/1.1 429" "$denied"
is "it names only the limit that denies" 1 "$(seen "$denied" | tr ',' '\n' | wc -l)"
passed=$(check 192.0.2.3)
is "an allowed check lists all limits" "$all" "$(seen "$(tail -n1 <<<"$passed")")"
is "but its headers show one limit" 1 "$(seen "$(headers "$passed")" | tr ',' '\n' | wc -l)"
rls=$(curl -s -m 60 "$http/json" -d '{"domain":"d","descriptors":[{"entries":[{"key":"path","value":"/login"},
  {"key":"remote_address","value":"192.0.2.2"}]}]}')
is "the answer to Envoy: one limit" 1 "$(seen "$rls" | tr ',' '\n' | wc -l)"
is "Redis clients: one limit" "login" \
  "$(redis WEIR.CHECK path /login ip 192.0.2.2 | grep -o 'login\|secret[a-z-]*' | sort -u)"

rules 'limits: all' >"$work/weir.yaml"
start_server --config "$work/weir.yaml"
for _ in 1 2; do auth 192.0.2.1 >/dev/null; done
is "limits: all: a denial lists all" "$all" "$(seen "$(auth 192.0.2.1)")"
is "in the fields, too" "$all" "$(seen "$(headers "$(auth 192.0.2.1)")")"

# What docs/configuration.md shows of the fields is what they are.
shown() { grep -o "\`$1: \"api: 100/minute\"[^\`]*\`" "$2/docs/configuration.md" | tr -d '\`'; }
echo 'rules: [{name: api, per: user, limit: 100/minute}]' >"$work/weir.yaml"
start_server --config "$work/weir.yaml"
answer=$(post '{"user":"42"}')
is "the page shows RateLimit-Policy as it is" "$(shown RateLimit-Policy "$2")" \
  "$(grep '^RateLimit-Policy: ' <<<"$answer")"
is "and RateLimit, but for its numbers" "$(shown RateLimit "$2" | sed 's/=[0-9]*/=N/g')" \
  "$(grep '^RateLimit: ' <<<"$answer" | sed 's/=[0-9]*/=N/g')"
finish
