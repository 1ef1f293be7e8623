# Denials in the log: at most a few lines a second, but the count is complete. Request ids are passed through.
#
# ctest runs it as `bash denials_log.sh PROGRAM SOURCE_DIR`.
source "$(dirname "$0")/lib.bash"

# Of a log as JSON: how many denials were made, how many of them have a line.
add_up() {
  "$python" - "$1" <<'PY'
import json, sys, collections
lines, rest, seconds = 0, 0, collections.Counter()
for text in open(sys.argv[1]):
    line = json.loads(text)
    rest += int(line.get("not_logged", 0))
    if line["msg"] == "denied":
        lines += 1
        seconds[line["ts"][:19]] += 1
print(lines + rest, lines, max(seconds.values(), default=0), len(seconds))
PY
}

echo 'rules: [{name: login, per: ip, limit: 1/year}]' >"$work/weir.yaml"
start_server --config "$work/weir.yaml" --log-format json --threads 2
err="$work/err0"
ask='{"ip":"192.0.2.1","path":"/login"}'
post "$ask" -H 'X-Request-Id: first' >"$work/answer"
is "the id of a request comes back" "X-Request-Id: first" "$(grep -i x-request-id "$work/answer")"
out=$(post "$ask" -H 'X-Request-Id: req-7')
has "with a denial, too" "X-Request-Id: req-7" "$out"
is "an id with blanks is none" "" "$(post "$ask" -H 'X-Request-Id: a b' | grep -i request-id)"
is "nor is one that is too long" "" "$(post "$ask" -H "X-Request-Id: $(printf 'x%.0s' {1..129})" | grep -i request-id)"
is "where none is, none is made" "" "$(post "$ask" | grep -i request-id)"
until_true 10 grep -q req-7 "$err"
line=$(grep req-7 "$err")
for part in '"level":"info"' '"msg":"denied"' '"protocol":"http"' '"rule":"login"' '"limit":"1/year"' \
  '"retry_after":"' '"key_hash":"'; do
  has "a denial has $part" "$part" "$line"
done
is "and no address" 0 "$(grep -c '192\.0\.2\.1' "$err")"
hashes=$(grep '"msg":"denied"' "$err" | grep -o '"key_hash":"[0-9a-f]*"' | sort -u | wc -l)
is "one key has one hash" 1 "$hashes"
is "a peek denies nothing" "" "$(curl -s "$http/v1/check?peek=1" -H 'X-Request-Id: peek' -d "$ask" -o /dev/null
  sleep 0.3; grep '"peek"' "$err")"

# Every listener, and the sum of their denials: 4 until now.
sleep 1.1
curl -s "$http/v1/check" -d '{"key":"k","limit":"1/year"}' -o /dev/null
curl -s "$http/v1/check" -H 'X-Request-Id: own' -d '{"key":"k","limit":"1/year"}' -o /dev/null
curl -s "$http/v1/checks" -H 'X-Request-Id: many' -o /dev/null \
  -d "{\"checks\":[$ask,{\"key\":\"k\",\"limit\":\"1/year\"}]}"
curl -s "$http/auth" -H 'X-Request-Id: auth' -H 'X-Forwarded-For: 192.0.2.1' -o /dev/null
curl -s "$http/auth" -H 'X-Request-Id: auth' -H 'X-Forwarded-For: 192.0.2.1' -o /dev/null
redis WEIR.CHECK ip 192.0.2.1 path /login >/dev/null
curl -s "$http/json" -H 'X-Request-Id: json' -o /dev/null \
  -d '{"domain":"d","descriptors":[{"entries":[{"key":"remote_address","value":"192.0.2.1"}]}]}'
redis WEIR.LIMIT k 1/year >/dev/null
for id in own many auth json; do
  until_true 10 grep -q "\"request_id\":\"$id\"" "$err" || is "a denial of '$id' is logged" yes no
done
is "two of many checks" 2 "$(grep -c '"request_id":"many"' "$err")"
has "a limit that the client sent" '"rule":"inline"' "$(grep '"own"' "$err")"
is "Redis clients" 2 "$(grep -c '"protocol":"resp"' "$err")"
is "no key in clear" 0 "$(grep -c '"key":' "$err")"
before=$(add_up "$err")
before=${before%% *}

# A flood, then silence: what a line calls not_logged and the lines are all that was denied.
flood=300000
timeout 600 "$program" bench --resp "127.0.0.1:$resp_port" --each-key --keys $flood --connections 8 --json \
  --command 'CL.THROTTLE one 0 1 86400 1' >"$work/flood.json"
is "all that were sent were answered" $flood "$(number checks "$(cat "$work/flood.json")")"
all_told() { [ "$(add_up "$err" | cut -d' ' -f1)" == $((before + flood - 1)) ]; }
until_true 10 all_told
read -r all lines most seconds <<<"$(add_up "$err")"
is "lines and not_logged are all denials" $((before + flood - 1)) "$all"
is "at most 10 lines of a second of the server" yes "$([ "$most" -le 20 ] && [ "$lines" -le $((10 * (seconds + 1))) ] &&
  echo yes)"
echo "      $flood denials, $lines lines, at most $most with one second in them"
ends_well "the server ends"

start_server --config "$work/weir.yaml" --log-keys --log-denials 1000
err="$work/err1"
post "$ask" -o /dev/null
post "$ask" -o /dev/null
until_true 10 grep -q denied "$err"
has "--log-keys: keys in clear, as text" "weir: denied protocol=http rule=login limit=1/year retry_after=" \
  "$(cat "$err")"
has "the rule's key" "192.0.2.1" "$(cat "$err")"
start_server --config "$work/weir.yaml" --log-denials 0
for _ in 1 2 3; do post "$ask" -o /dev/null; done
ends_well "the server ends"
is "--log-denials 0: none" "" "$(cat "$work/err2")"
finish
