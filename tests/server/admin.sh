# The admin API from outside, with curl, route by route: what it shows, what it changes for requests to the other
# listeners, what survives kill -9, and what undo restores.
source "$(dirname "$0")/lib.bash"

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: login, match: {path: /login}, per: ip, limit: 2/year, owner: web}
  - {name: api, per: user, limit: 3/year}
YAML
start_server --config "$work/weir.yaml" --state "$work/state"

# admin METHOD PATH [BODY]: the body of the answer; its status is in $work/status.
admin() {
  curl -s -m 60 -X "$1" "http://127.0.0.1:$admin_port$2" -H 'Content-Type: application/json' -H 'X-Weir-Who: alice' \
    -d "${3-}" -o "$work/answer" -w '%{http_code}' >"$work/status"
  cat "$work/answer"
}
# status NAME CODE METHOD PATH [BODY]
status() {
  admin "${@:3}" >/dev/null
  is "$1" "$2" "$(cat "$work/status")"
}
login() { code_of "$http/v1/check" -d "{\"path\":\"/login\",\"ip\":\"$1\"}"; }
by_redis() { redis WEIR.CHECK "$@" | cut -d' ' -f1-2; }
times() { for _ in $(seq "$1"); do login "$2"; echo; done | uniq -c | tr -s ' \n' ' '; }

# --- looking ----------------------------------------------------------------------------------------------------------
status=$(get /admin/v1/status)
is "the process" "$pid" "$(member pid "$status")"
is "ready" true "$(member ready "$status")"
is "the listeners" '"http" "grpc" "resp" "admin"' "$("$python" -c '
import json, sys
print(*[json.dumps(d["name"]) for d in json.load(sys.stdin)["listeners"]])' <<<"$status")"
is "the rules' number" 2 "$(member config.rules "$status")"
is "the file was read" true "$(member config.last_reload.ok "$status")"
is "no change is in effect" 0 "$(member changes_active "$status")"
is "the config has the hash of the status" "$(member config.hash "$status")" "$(get /admin/v1/config | "$python" -c '
import hashlib, json, sys
print(hashlib.sha256(json.load(sys.stdin)["text"].encode()).hexdigest())')"
has "all routes are listed" "POST /admin/v1/keys/ban" "$(get /)"

is "two pass, then none" " 2 200 1 429 " "$(times 3 192.0.2.1)"
rules=$(get /admin/v1/rules)
is "a rule's name" login "$(member rules.0.name "$rules")"
is "what it has allowed" 2 "$(member rules.0.allowed "$rules")"
is "what it has denied" 1 "$(member rules.0.denied "$rules")"
is "its limits" '["2/year"]' "$(member rules.0.limits "$rules")"
is "its owner" web "$(member rules.0.owner "$rules")"
top=$(get "/admin/v1/top?by=denied&rule=login&n=5")
has "the client that is denied most" '"rule":"login","key":"ip:192.0.2.1"' "$top"
explained=$(admin POST /admin/v1/keys/explain '{"path":"/login","ip":"192.0.2.1"}')
is "explained" false "$(member allowed "$explained")"
is "by the rule" "login: 2/year" "$(member binding "$explained")"

# --- a rule's mode ----------------------------------------------------------------------------------------------------
made=$(admin POST /admin/v1/rules/mode '{"rule":"login","mode":"off","reason":"incident 12"}')
is "off: made" 200 "$(cat "$work/status")"
is "off: what changed" "changed: login" "$(member changes.0 "$made")"
is "off: passes" 200 "$(login 192.0.2.1)"
changes=$(get /admin/v1/changes)
is "who made the change" alice "$(member changes.0.who "$changes")"
is "from which address" 127.0.0.1 "$(member changes.0.from "$changes")"
is "what changed" "rule login: off" "$(member changes.0.what "$changes")"
is "the reason" "incident 12" "$(member changes.0.reason "$changes")"
is "it is in effect" true "$(member changes.0.active "$changes")"
kill_server
start_server --config "$work/weir.yaml" --state "$work/state"
is "killed and started again: off still" 200 "$(login 192.0.2.1)"
is "and the list of rules shows it" off "$(member rules.0.mode "$(get /admin/v1/rules)")"
undone=$(admin POST /admin/v1/undo '{}')
is "undone" 1 "$(member undoes "$undone")"
is "undone: what was used stays used" 429 "$(login 192.0.2.1)"
is "undone by" 2 "$(member changes.1.undone_by "$(get '/admin/v1/changes?n=2')")"
status "there is nothing more to undo" 404 POST /admin/v1/undo '{}'
for seconds in 1 4 16 64; do # on a busy machine, a short time may be over before the request
  admin POST /admin/v1/rules/mode "{\"rule\":\"login\",\"mode\":\"off\",\"for\":\"${seconds}s\"}" >/dev/null
  code=$(login 192.0.2.1)
  [ "$code" == 429 ] || break
done
is "for a time" 200 "$code"
is_denied() { [ "$(login 192.0.2.1)" == 429 ]; }
until_true 20 is_denied || is "it ends by itself" yes no
status "an unknown rule" 404 POST /admin/v1/rules/mode '{"rule":"logn","mode":"off"}'
has "and the nearest rule" "did you mean login?" "$(cat "$work/answer")"

# --- reset, ban -------------------------------------------------------------------------------------------------------
is "reset" '{"reset":true}' "$(admin POST /admin/v1/keys/reset '{"rule":"login","path":"/login","ip":"192.0.2.1"}')"
is "counts from zero" " 2 200 1 429 " "$(times 3 192.0.2.1)"
is "a reset is known" reset "$(member changes.0.kind "$(get /admin/v1/changes)")"
ban=$(admin POST /admin/v1/keys/ban '{"ip":"198.51.100.7","for":"1h","reason":"scraper"}')
has "a ban's rule" "ban-" "$(member rule "$ban")"
is "banned" 429 "$(login 198.51.100.7)"
is "banned for Redis clients, too" "allowed 0" "$(by_redis ip 198.51.100.7)"
is "another address is not" 200 "$(login 198.51.100.8)"
kill_server
start_server --config "$work/weir.yaml" --state "$work/state"
is "a ban survives kill -9" 429 "$(login 198.51.100.7)"
admin POST /admin/v1/undo "{\"id\":$(member id "$ban")}" >/dev/null
is "undone: allowed" 200 "$(login 198.51.100.7)"
for seconds in 1 4 16 64; do # as above
  admin POST /admin/v1/keys/ban "{\"ip\":\"198.51.100.9\",\"for\":\"${seconds}s\"}" >/dev/null
  code=$(login 198.51.100.9)
  [ "$code" == 200 ] || break
done
is "banned for a moment" 429 "$code"
is_welcome() { [ "$(login 198.51.100.9)" == 200 ]; }
until_true 20 is_welcome || is "a ban ends by itself" yes no

status "all addresses: not without force" 409 POST /admin/v1/keys/ban '{"ip":"0.0.0.0/0","for":"1h"}'
has "and how" 'force' "$(cat "$work/answer")"
is "no address is denied by it" 200 "$(login 198.51.100.10)"

# --- the kill switch, on every listener -------------------------------------------------------------------------------
# The client is over its limit on each listener. With the kill switch, it is denied on none.
times 3 192.0.2.9 >/dev/null
auth() { code_of "$http/auth" -H 'X-Forwarded-Uri: /login'; }
for _ in 1 2 3; do auth >/dev/null; done
is "forward-auth denies" 429 "$(auth)"
admin POST /admin/v1/kill-switch '{"on":true,"reason":"the limiter is the outage"}' >/dev/null
is "kill switch: HTTP" 200 "$(login 192.0.2.9)"
is "kill switch: forward-auth" 200 "$(auth)"
is "kill switch: Redis clients" "allowed 1" "$(by_redis path /login ip 192.0.2.9)"
is "kill switch: in the status" true "$(member kill_switch "$(get /admin/v1/status)")"
admin POST /admin/v1/undo '{}' >/dev/null
is "and back" 429 "$(login 192.0.2.9)"
is "and back for Redis clients" "allowed 0" "$(by_redis path /login ip 192.0.2.9)"

# --- the policy -------------------------------------------------------------------------------------------------------
api='{name: api, per: user, limit: 3/year}'
new="rules: [{name: login, match: {path: /login}, per: ip, limit: 5/year}, $api]"
cut="rules: [{name: login, match: {path: /login}, per: ip, limit: 1/10year}, $api]"
is "a good text" true "$(member ok "$(admin POST /admin/v1/config/validate "{\"text\":\"$new\"}")")"
has "a bad text, with its place" "config:1:23: unknown key" \
  "$(member error "$(admin POST /admin/v1/config/validate '{"text":"rules: [{name: login, limt: 9/year}]"}')")"
is "which is no error of the call" 200 "$(cat "$work/status")"
made=$(admin POST /admin/v1/config/apply "{\"text\":\"$new\",\"reason\":\"more room\"}")
is "applied" "changed: login: 2/year -> 5/year" "$(member changes.0 "$made")"
is "what was used stays used" " 3 200 1 429 " "$(times 4 192.0.2.9)"
sed -i 's/2\/year/4\/year/' "$work/weir.yaml"
waits() { [ "$(member config.reloads_ok "$(get /admin/v1/status)")" == 1 ]; }
until_true 20 waits || is "the file is read" yes no
is "and waits" "$(member id "$made")" "$(member config.file_waits_for "$(get /admin/v1/status)")"
has "the text in effect" "5/year" "$(member text "$(get /admin/v1/config)")"
admin POST /admin/v1/undo '{}' >/dev/null
has "undone: the file is in effect" "4/year" "$(member text "$(get /admin/v1/config)")"
status "too large a change" 409 POST /admin/v1/config/apply "{\"text\":\"$cut\"}"
is "reload" '{"ok":true,"changes":[]}' "$(admin POST /admin/v1/reload '{}')"
echo 'rules: [{name: a, limt: 1/s}]' >"$work/weir.yaml"
has "reload of a bad file" "weir.yaml:1:" "$(admin POST /admin/v1/reload '{}')"
is "with status 422" 422 "$(cat "$work/status")"
is "and the status says so" false "$(member config.last_reload.ok "$(get /admin/v1/status)")"

# --- the log ----------------------------------------------------------------------------------------------------------
is "the log's level" '{"level":"info"}' "$(get /admin/v1/log)"
admin PUT /admin/v1/log '{"level":"debug"}' >/dev/null
is "changed" '{"level":"debug"}' "$(get /admin/v1/log)"
admin POST /admin/v1/undo '{}' >/dev/null
is "and back" '{"level":"info"}' "$(get /admin/v1/log)"

# --- no room for a change ---------------------------------------------------------------------------------------------
# A file of at most 2 KiB stands for a disk that is full.
echo 'rules: [{name: login, match: {path: /login}, per: ip, limit: 2/year}]' >"$work/weir.yaml"
trap '' XFSZ
ulimit -S -f 2
start_server --config "$work/weir.yaml" --changes "$work/changes"
ulimit -S -f unlimited
for _ in $(seq 20); do
  admin POST /admin/v1/rules/mode '{"rule":"login","mode":"shadow"}' >/dev/null
  [ "$(cat "$work/status")" == 200 ] || break
done
is "a full disk: refused" 503 "$(cat "$work/status")"
has "and the answer says why" "so it is not made" "$(cat "$work/answer")"
before=$(member changes_active "$(get /admin/v1/status)")
status "again" 503 POST /admin/v1/rules/mode '{"rule":"login","mode":"off"}'
is "the previous change stays in effect" shadow "$(member rules.0.mode "$(get /admin/v1/rules)")"
is "and no more" "$before" "$(member changes_active "$(get /admin/v1/status)")"
is "checks are still answered" 200 "$(login 192.0.2.1)"
kill_server
start_server --config "$work/weir.yaml" --changes "$work/changes"
is "the stored changes are not lost" "$before" "$(member changes_active "$(get /admin/v1/status)")"

# --- a damaged journal ------------------------------------------------------------------------------------------------
kill_server
cp "$work/changes" "$work/whole"
head -c -20 "$work/whole" >"$work/changes"
start_server --config "$work/weir.yaml" --changes "$work/changes"
has "half a line is dropped, and the log says so" "and was dropped" "$(cat "$work/err$((${#server_pids[@]} - 1))")"
is "only that" $((before - 1)) "$(member changes_active "$(get /admin/v1/status)")"
sed '2s/login/lagin/' "$work/whole" >"$work/damaged"
refuses 1 "damaged:2: the line is damaged: its checksum does not match; remove the line" \
  serve --config "$work/weir.yaml" --changes "$work/damaged" --http :0 --grpc off --resp off --admin off
finish
