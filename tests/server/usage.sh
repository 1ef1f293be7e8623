# What each subject used, from outside: through every listener, by the command and the API, after a restart, a kill -9
# and an upgrade, and with damaged files.
source "$(dirname "$0")/lib.bash"
not_at_the_end_of 86400 300 # accounts begin again with each day of UTC

cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: search, match: {path: /search}, per: user, limit: 5/year}
  - {name: tokens, match: {path: /chat}, per: [path, api_key], limit: 100000/year}
  - {name: all, per: global, limit: 100000/year}
YAML
run_server() { start_server --config "$work/weir.yaml" --state "$work/state" --drain-delay 0 "$@"; }
usage() { timeout 600 "$program" usage --admin "127.0.0.1:$admin_port" "$@" 2>&1; }
api() { curl -s -m 60 "http://127.0.0.1:$admin_port/admin/v1/usage${1:-}"; }
check() { post "$1" >/dev/null; }
# used SUBJECT RULE: over all days, so that a midnight changes nothing.
used() { usage "$1" --rule "$2" --csv | tr -d '\r' | awk -F, 'NR > 1 {sum += $5} END {print sum + 0}'; }
# csv SUBJECT RULE: used, error, denied, over all days.
csv() {
  usage "$1" --rule "$2" --csv | tr -d '\r' |
    awk -F, 'NR > 1 {n += $5; e += $6; d += $7} END {print n + 0, e + 0, d + 0}'
}

run_server
has "no usage at first" "no usage from" "$(usage)"
for _ in 1 2 3 4 5 6 7; do check '{"user":"42","path":"/search"}'; done
redis WEIR.CHECK user 43 path /search >/dev/null
redis CL.THROTTLE inline 15 30 60 >/dev/null
is "over HTTP: five passed, two did not" "5 0 2" "$(csv user:42 search)"
is "over RESP" "1 0 0" "$(csv user:43 search)"
is "all together" "6 0 0" "$(csv '*' all)"
table=$(usage user:42)
has "a table has heads" "day" "$table"
has "  and the rule" "search" "$table"
is "limits that clients send are not counted" 0 "$(usage --top 100 --csv | grep -c inline)"

id=$(curl -s -m 60 "$http/v1/reserve" -d '{"api_key":"secret","path":"/chat","cost":1000}' |
  sed -n 's/.*"reservation":"\([^"]*\)".*/\1/p')
is "a reservation counts as used" 1000 "$(used api_key:secret tokens)"
curl -s -m 60 "$http/v1/commit" -d "{\"id\":\"$id\",\"api_key\":\"secret\",\"path\":\"/chat\",\"cost\":300}" >/dev/null
is "until it is settled" 300 "$(used api_key:secret tokens)"
check '{"api_key":"secret","path":"/chat","cost":-100}'
is "a refund lowers usage" 200 "$(used api_key:secret tokens)"
hash=$(printf secret | sha256sum | cut -d' ' -f1)
is "an API key is known by its hash" 200 "$(used "api_key:sha256:$hash" tokens)"
is "and never shown" 0 "$(api | grep -c secret)"

has "JSON has the rows of a subject" '"rule":"search","subject":"user:42","used":5,"error":0,"denied":2' \
  "$(api '?subject=user:42')"
first=$(api '?top=1')
has "and the top client" "\"rows\":[{\"rule\":\"tokens\",\"subject\":\"api_key:sha256:$hash\",\"used\":200" "$first"
is "the command prints the same JSON" "$first" "$(usage --top 1 --json)"
is "by one rule" 0 "$(usage --top 9 --rule search --csv | grep -c tokens)"
has "no subject" "is not a subject: write it like user:42" "$(usage 42)"
has "no day" "is not a day; write it like" "$(usage user:42 --from tomorrow)"
has "an unknown parameter" "unknown parameter 'subjct=user:42'; use subject=user:42" "$(api '?subjct=user:42')"
has "no number" "top is 'x'; give a whole number" "$(api '?top=x')"
is "another day knows nothing" "user:42: no known usage from 2020-01-01 to 2020-01-31" \
  "$(usage user:42 --from 2020-01-01 --to 2020-01-31)"
has "metrics have the number of accounts" "weir_usage_accounts 4" "$(metrics)"

# A restart.
stop_server
run_server
is "after a restart all is there" "5 0 2" "$(csv user:42 search)"
is "also the refund" 200 "$(used api_key:secret tokens)"

# An upgrade: both processes count, each for itself.
check '{"user":"44","path":"/search"}'
old=$pid
kill -USR2 "$pid"
eventually "an upgrade" has_ended "$old"
pid=$(sed -n 's/.*new process took over.*pid=\([0-9]*\).*/\1/p' "$work"/err* | tail -n 1)
server_pids+=("$pid")
check '{"user":"44","path":"/search"}'
is "loses no usage and counts none twice" 2 "$(used user:44 search)"
is "earlier usage stays" "5 0 2" "$(csv user:42 search)"

# kill -9 loses what was counted since the last writing, ten seconds at most.
check '{"user":"45","path":"/search"}'
eventually "it is on the disk within 10 s" grep -rqs --include='*.[0-9]' user:45 "$work/state.usage"
kill -KILL "$pid"
until_true 20 has_ended "$pid"
run_server
is "after kill -9 what was written is there" "1 2 5" \
  "$(used user:45 search) $(used user:44 search) $(used user:42 search)"
written() { awk '/ user:46$/ {sum += $1} END {print sum + 0}' "$work"/state.usage/*.[0-9]; }
for _ in 1 2 3; do check '{"user":"46","path":"/search"}'; done
has_written() { [ "$(written)" -ge 1 ]; }
eventually "what was sent is on the disk within 10 s" has_written
for _ in 1 2; do check '{"user":"46","path":"/search"}'; done
kill_server
least=$(written)
run_server
after=$(used user:46 search)
is "of $least that were written and 5 that were sent, $after are known" yes \
  "$([ "$least" -ge 1 ] && [ "$after" -ge "$least" ] && [ "$after" -le 5 ] && echo yes)"
is "  and nothing else is lost" 5 "$(used user:42 search)"

# Damage.
stop_server
for file in "$work"/state.usage/20*; do printf x | dd of="$file" bs=1 seek=40 conv=notrunc 2>/dev/null; done
run_server
has "damaged files are renamed, and logged" "starting its day from zero" "$(cat "$work"/err*)"
is "  there they are" yes "$(compgen -G "$work/state.usage/*.damaged" >/dev/null && echo yes)"
check '{"user":"47","path":"/search"}'
is "it counts on" 1 "$(used user:47 search)"
stop_server

# More subjects than --usage-subjects.
start_server --config "$work/weir.yaml" --usage-subjects 10
for user in {1..30}; do check "{\"user\":\"$user\",\"path\":\"/search\"}"; done
for _ in 1 2 3; do check '{"user":"big","path":"/search"}'; done
read -r n error _ <<<"$(csv user:big search)"
is "a number is a bound: $n, less $error at most" yes "$([ "$n" -ge 3 ] && [ $((n - error)) -le 3 ] && echo yes)"
has "for an unknown subject there is a bound" \
  "not exact, as there were more subjects than --usage-subjects" "$(usage user:1)"
has "metrics have the number of accounts, at most 10" "weir_usage_accounts 10" "$(metrics)"
stop_server

start_server --config "$work/weir.yaml" --usage-subjects 0
check '{"user":"42","path":"/search"}'
has "usage can be switched off" "usage is not counted" "$(usage user:42)"
start_server --config "$work/weir.yaml" --hash-keys
check '{"user":"alice","path":"/search"}'
is "with --hash-keys no client is named" 0 "$(api '' | grep -c alice)"
is "and found all the same" 1 "$(used user:alice search)"
finish
