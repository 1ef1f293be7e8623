# The admin API from outside, by curl, route by route: what it shows, what it changes for those who ask the other
# doors, what survives kill -9, and what undo brings back.
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
get() { curl -s -m 60 "http://127.0.0.1:$admin_port$1"; }
# value PATH-IN-JSON JSON: 'policy.rules', 'changes.0.what'
value() {
  python3 -c '
import json, sys
at = json.load(sys.stdin)
for part in sys.argv[1].split("."):
    at = at[int(part)] if isinstance(at, list) else at[part]
print(json.dumps(at) if not isinstance(at, str) else at)' "$1" <<<"$2"
}
login() { curl -s -m 60 -o /dev/null -w '%{http_code}' "$http/v1/check" -d "{\"path\":\"/login\",\"ip\":\"$1\"}"; }
by_redis() { redis WEIR.CHECK "$@" | cut -d' ' -f1-2; }
times() { for _ in $(seq "$1"); do login "$2"; echo; done | uniq -c | tr -s ' \n' ' '; }

# --- looking ----------------------------------------------------------------------------------------------------------
status=$(get /admin/v1/status)
is "the process" "$pid" "$(value pid "$status")"
is "ready" true "$(value ready "$status")"
is "the doors" '"http" "grpc" "resp" "admin"' "$(python3 -c '
import json, sys
print(*[json.dumps(d["name"]) for d in json.load(sys.stdin)["listeners"]])' <<<"$status")"
is "the rules' number" 2 "$(value config.rules "$status")"
is "the file was read" true "$(value config.last_reload.ok "$status")"
is "no change holds" 0 "$(value changes_active "$status")"
is "the policy has the hash that it is told by" "$(value config.hash "$status")" "$(get /admin/v1/config | python3 -c '
import hashlib, json, sys
print(hashlib.sha256(json.load(sys.stdin)["text"].encode()).hexdigest())')"
has "all routes are listed" "POST /admin/v1/keys/ban" "$(get /)"

is "two pass, then none" " 2 200 1 429 " "$(times 3 192.0.2.1)"
rules=$(get /admin/v1/rules)
is "a rule's name" login "$(value rules.0.name "$rules")"
is "what it has allowed" 2 "$(value rules.0.allowed "$rules")"
is "what it has denied" 1 "$(value rules.0.denied "$rules")"
is "its limits" '["2/year"]' "$(value rules.0.limits "$rules")"
is "its owner" web "$(value rules.0.owner "$rules")"
top=$(get "/admin/v1/top?by=denied&rule=login&n=5")
has "who is denied most" '"rule":"login","key":"ip:192.0.2.1"' "$top"
explained=$(admin POST /admin/v1/keys/explain '{"path":"/login","ip":"192.0.2.1"}')
is "explained" false "$(value allowed "$explained")"
is "by the rule" "login: 2/year" "$(value binding "$explained")"

# --- a rule's mode ----------------------------------------------------------------------------------------------------
made=$(admin POST /admin/v1/rules/mode '{"rule":"login","mode":"off","reason":"incident 12"}')
is "off: made" 200 "$(cat "$work/status")"
is "off: what changed" "changed: login" "$(value changes.0 "$made")"
is "off: passes" 200 "$(login 192.0.2.1)"
changes=$(get /admin/v1/changes)
is "who" alice "$(value changes.0.who "$changes")"
is "from" 127.0.0.1 "$(value changes.0.from "$changes")"
is "what" "rule login: off" "$(value changes.0.what "$changes")"
is "why" "incident 12" "$(value changes.0.reason "$changes")"
is "it holds" true "$(value changes.0.active "$changes")"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
start_server --config "$work/weir.yaml" --state "$work/state"
is "killed and started again: off still" 200 "$(login 192.0.2.1)"
is "and told" off "$(value rules.0.mode "$(get /admin/v1/rules)")"
undone=$(admin POST /admin/v1/undo '{}')
is "undone" 1 "$(value undoes "$undone")"
is "undone: what was spent is spent" 429 "$(login 192.0.2.1)"
is "undone by" 2 "$(value changes.1.undone_by "$(get '/admin/v1/changes?n=2')")"
admin POST /admin/v1/undo '{}' >/dev/null
is "there is nothing more to undo" 404 "$(cat "$work/status")"
admin POST /admin/v1/rules/mode '{"rule":"login","mode":"off","for":"1s"}' >/dev/null
is "for a time" 200 "$(login 192.0.2.1)"
is_denied() { [ "$(login 192.0.2.1)" == 429 ]; }
until_true 20 is_denied || is "it ends by itself" yes no
admin POST /admin/v1/rules/mode '{"rule":"logn","mode":"off"}' >/dev/null
is "a rule that is none" 404 "$(cat "$work/status")"
has "and the one that was meant" "did you mean login?" "$(cat "$work/answer")"

# --- reset, ban -------------------------------------------------------------------------------------------------------
is "reset" '{"reset":true}' "$(admin POST /admin/v1/keys/reset '{"rule":"login","path":"/login","ip":"192.0.2.1"}')"
is "counts anew" " 2 200 1 429 " "$(times 3 192.0.2.1)"
is "a reset is known" reset "$(value changes.0.kind "$(get /admin/v1/changes)")"
ban=$(admin POST /admin/v1/keys/ban '{"ip":"198.51.100.7","for":"1h","reason":"scraper"}')
has "a ban's rule" "ban-" "$(value rule "$ban")"
is "banned" 429 "$(login 198.51.100.7)"
is "banned for Redis clients, too" "allowed 0" "$(by_redis ip 198.51.100.7)"
is "others are not" 200 "$(login 198.51.100.8)"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
start_server --config "$work/weir.yaml" --state "$work/state"
is "a ban survives kill -9" 429 "$(login 198.51.100.7)"
admin POST /admin/v1/undo "{\"id\":$(value id "$ban")}" >/dev/null
is "undone: welcome" 200 "$(login 198.51.100.7)"
admin POST /admin/v1/keys/ban '{"ip":"198.51.100.9","for":"1s"}' >/dev/null
is "banned for a second" 429 "$(login 198.51.100.9)"
is_welcome() { [ "$(login 198.51.100.9)" == 200 ]; }
until_true 20 is_welcome || is "a ban ends by itself" yes no

admin POST /admin/v1/keys/ban '{"ip":"0.0.0.0/0","for":"1h"}' >/dev/null
is "everybody: not without force" 409 "$(cat "$work/status")"
has "and how" 'force' "$(cat "$work/answer")"
is "others are still welcome" 200 "$(login 198.51.100.10)"

# --- the kill switch, at every door -----------------------------------------------------------------------------------
# Everybody is over the limit at each door; then nobody.
times 3 192.0.2.9 >/dev/null
auth() { curl -s -m 60 -o /dev/null -w '%{http_code}' "$http/auth" -H 'X-Forwarded-Uri: /login'; }
for _ in 1 2 3; do auth >/dev/null; done
is "forward-auth denies" 429 "$(auth)"
admin POST /admin/v1/kill-switch '{"on":true,"reason":"the limiter is the outage"}' >/dev/null
is "kill switch: HTTP" 200 "$(login 192.0.2.9)"
is "kill switch: forward-auth" 200 "$(auth)"
is "kill switch: Redis clients" "allowed 1" "$(by_redis path /login ip 192.0.2.9)"
is "kill switch: told" true "$(value kill_switch "$(get /admin/v1/status)")"
admin POST /admin/v1/undo '{}' >/dev/null
is "and back" 429 "$(login 192.0.2.9)"
is "and back for Redis clients" "allowed 0" "$(by_redis path /login ip 192.0.2.9)"

# --- the policy -------------------------------------------------------------------------------------------------------
api='{name: api, per: user, limit: 3/year}'
new="rules: [{name: login, match: {path: /login}, per: ip, limit: 5/year}, $api]"
cut="rules: [{name: login, match: {path: /login}, per: ip, limit: 1/10year}, $api]"
is "a good text" true "$(value ok "$(admin POST /admin/v1/config/validate "{\"text\":\"$new\"}")")"
has "a bad text, with its place" "config:1:23: unknown key" \
  "$(value error "$(admin POST /admin/v1/config/validate '{"text":"rules: [{name: login, limt: 9/year}]"}')")"
is "which is no error of the call" 200 "$(cat "$work/status")"
made=$(admin POST /admin/v1/config/apply "{\"text\":\"$new\",\"reason\":\"more room\"}")
is "applied" "changed: login: 2/year -> 5/year" "$(value changes.0 "$made")"
is "what was spent stays spent" " 3 200 1 429 " "$(times 4 192.0.2.9)"
sed -i 's/2\/year/4\/year/' "$work/weir.yaml"
waits() { [ "$(value config.reloads_ok "$(get /admin/v1/status)")" == 1 ]; }
until_true 20 waits || is "the file is read" yes no
is "and waits" "$(value id "$made")" "$(value config.file_waits_for "$(get /admin/v1/status)")"
has "the text in force" "5/year" "$(value text "$(get /admin/v1/config)")"
admin POST /admin/v1/undo '{}' >/dev/null
has "undone: the file is in force" "4/year" "$(value text "$(get /admin/v1/config)")"
admin POST /admin/v1/config/apply "{\"text\":\"$cut\"}" >/dev/null
is "too large a change" 409 "$(cat "$work/status")"
is "reload" '{"ok":true,"changes":[]}' "$(admin POST /admin/v1/reload '{}')"
echo 'rules: [{name: a, limt: 1/s}]' >"$work/weir.yaml"
has "reload of a bad file" "weir.yaml:1:" "$(admin POST /admin/v1/reload '{}')"
is "is 422" 422 "$(cat "$work/status")"
is "and told" false "$(value config.last_reload.ok "$(get /admin/v1/status)")"

# --- the log ----------------------------------------------------------------------------------------------------------
is "the log's level" '{"level":"info"}' "$(get /admin/v1/log)"
admin PUT /admin/v1/log '{"level":"debug"}' >/dev/null
is "turned" '{"level":"debug"}' "$(get /admin/v1/log)"
admin POST /admin/v1/undo '{}' >/dev/null
is "and back" '{"level":"info"}' "$(get /admin/v1/log)"

# --- no room for a change ---------------------------------------------------------------------------------------------
# A file of at most 2 KiB stands for a disk that is full.
cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: login, match: {path: /login}, per: ip, limit: 2/year}
YAML
trap '' XFSZ
ulimit -S -f 2
start_server --config "$work/weir.yaml" --changes "$work/changes"
ulimit -S -f unlimited
for _ in $(seq 20); do
  admin POST /admin/v1/rules/mode '{"rule":"login","mode":"shadow"}' >/dev/null
  [ "$(cat "$work/status")" == 200 ] || break
done
is "a full disk: refused" 503 "$(cat "$work/status")"
has "and told why" "so it is not made" "$(cat "$work/answer")"
before=$(value changes_active "$(get /admin/v1/status)")
admin POST /admin/v1/rules/mode '{"rule":"login","mode":"off"}' >/dev/null
is "again" 503 "$(cat "$work/status")"
is "what was in force stays" shadow "$(value rules.0.mode "$(get /admin/v1/rules)")"
is "and no more" "$before" "$(value changes_active "$(get /admin/v1/status)")"
is "the checks go on" 200 "$(login 192.0.2.1)"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
start_server --config "$work/weir.yaml" --changes "$work/changes"
is "nothing is lost of what was kept" "$before" "$(value changes_active "$(get /admin/v1/status)")"

# --- a damaged journal ------------------------------------------------------------------------------------------------
kill -KILL "$pid"
wait "$pid" 2>/dev/null
cp "$work/changes" "$work/whole"
head -c -20 "$work/whole" >"$work/changes"
start_server --config "$work/weir.yaml" --changes "$work/changes"
has "half a line is dropped and told" "and was dropped" "$(cat "$work/err$((${#server_pids[@]} - 1))")"
is "only that" $((before - 1)) "$(value changes_active "$(get /admin/v1/status)")"
sed '2s/login/lagin/' "$work/whole" >"$work/damaged"
out=$(timeout 99 "$program" serve --config "$work/weir.yaml" --changes "$work/damaged" --http :0 --grpc off --resp off \
  --admin off 2>&1)
is "damage elsewhere: no start" 1 $?
has "with its place and what to do" \
  "damaged:2: the line is damaged: its checksum does not match; remove the line" "$out"
finish
