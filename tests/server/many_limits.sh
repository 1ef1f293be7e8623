# A table has few numbers for limits. Thousands of limits that requests send (CL.THROTTLE) leave numbers for the limits
# of rules, also for calendar limits: every check of a rule is decided. A past error: each such limit kept its number
# forever.
source "$(dirname "$0")/lib.bash"
config() {
  printf 'rules:\n  - name: daily\n    per: [user]\n    limit: %s\n    algorithm: fixed_window\n' "$1"
}
config 2000/day >"$work/weir.yaml"
start_server --config "$work/weir.yaml" --keys 10000
err=$work/err0
ask() { post "{\"user\":\"$1\"}" | head -1; }
is "the first rule is asked" "HTTP/1.1 200 OK" "$(ask ann)"
answers=$(for i in $(seq 1 5000); do echo "CL.THROTTLE key$((i % 10)) $((i + 20)) $((i + 40)) 3600"; done |
  timeout 60 redis-cli -p "$resp_port" | grep -c "^0$\|^1$\|(integer)")
at_least "5,000 limits on ten keys are answered" "$answers" 5000
is "none with an error" "0 5021 5020 -1 1" "$(redis cl.throttle fresh 5020 5040 3600)"

config '"1000/calendar_day Europe/Berlin"' >"$work/weir.yaml"
kill -HUP "$pid"
until_true 20 grep -q "config reloaded" "$err" || is "reloaded" yes no
for i in $(seq 1 20); do ask "user$i"; done | sort | uniq -c | tr -s ' ' >"$work/codes"
is "a calendar rule that comes after them is decided" " 20 HTTP/1.1 200 OK" "$(cat "$work/codes")"
finish
