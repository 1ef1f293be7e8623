# The commands that ask a running server: weir check, weir keys, weir rules. Run as an operator types them, against a
# server with rules; exit codes, words, and what they change.
source "$(dirname "$0")/lib.bash"
cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: login, match: {path: /login}, per: ip, limit: 3/year, algorithm: fixed_window}
  - {name: steps, per: user, limit: 5/year, algorithm: fixed_window}
  - {name: all, match: {path: /all}, per: global, limit: 2/year, algorithm: fixed_window}
YAML
start_server --config "$work/weir.yaml" --state "$work/state"

# weir COMMAND...: what it says, on one line, and its exit code in `code`.
weir() {
  local where=(--admin "127.0.0.1:$admin_port")
  [ "$1" != check ] || where=(--http "127.0.0.1:$http_port")
  said=$("$program" "$@" "${where[@]}" 2>&1)
  code=$?
  said=$(paste -sd' ' <<<"$said")
}

weir check --user 42
is "a check that passes: exit code 0" 0 "$code"
has "and says what is left" "allowed by steps: 4 of 5 left" "$said"
weir check --user 42 --peek
has "a peek charges nothing" "4 of 5 left" "$said"
for _ in 1 2 3 4; do weir check --user 42; done
weir check --user 42
is "a denial: exit code 3" 3 "$code"
has "and when to come again" "denied by steps: 0 of 5 left, retry in " "$said"
weir check --user 42 --json
has "as JSON, what the server said" '"remaining":0' "$said"
weir check --ip 192.0.2.1 --path /other
is "without a rule" "allowed: no_rule" "$said"
weir check --key a --limit 2/year
has "by a limit of its own" "allowed: 1 of 2 left" "$said"
weir check --key a --limit 2/parsec
is "a limit that is none: exit code 1" 1 "$code"
has "and why" "refused the request: " "$said"
said=$("$program" check --user 1 --http 127.0.0.1:1 2>&1)
is "nobody there: exit code 1" 1 "$?"
has "and what to do" "If weir serve runs at another address, use --http ADDR" "$said"

weir keys explain --user 42 --path /x
has "explain: every rule" "+ steps" "$said"
has "  also those that do not hold it" "- login" "$said"
has "  with what is left" "5/year (fixed_window)" "$said"
weir keys reset steps --user 42
is "reset" "steps: reset" "$said"
weir keys reset steps --user 42
is "again" "steps: nothing to reset" "$said"
weir check --user 42
has "and it counts from the beginning" "4 of 5 left" "$said"
weir check --path /all
weir keys reset all
is "a rule that counts by nothing needs no attributes" "all: reset" "$said"
weir keys reset steps
is "one that does needs them: exit code 1" 1 "$code"
weir keys reset stepz --user 42
is "a rule that is not there: exit code 1" 1 "$code"
weir keys reset stepz --user 42 --json
is "as JSON, too" 1 "$code"
has "  with what the server said" '"status":404' "$said"
weir keys explain
is "about nothing: exit code 2" 2 "$code"
weir keys ban --user 66 --for 1h --reason abuse
has "ban" "banned until " "$said"
ban=$(grep -o 'undo [0-9]*' <<<"$said")
weir check --user 66
is "who is banned is denied" 3 "$code"
weir rules $ban
weir check --user 66
is "until it is undone" 0 "$code"
weir keys ban --user 67 --for 1h --json
is "ban as JSON: exit code 0" 0 "$code"
has "  and what came of it" '"rule":"ban-' "$said"
weir rules undo --json
is "and its end" 0 "$code"
weir rules undo 999999 --json
is "a change that is not there, as JSON: exit code 1" 1 "$code"
weir rules show --json
has "the policy as JSON" '"hash":"' "$said"
weir keys top --by hits
has "top names the busiest" "user:42" "$said"

weir rules list
has "rules: a head" "rule   mode     per" "$said"
has "and each rule" "login  enforce  ip" "$said"
for change in 'rules mode login off' 'rules kill-switch on' 'keys ban --user 7'; do
  for time in '' soon; do
    # shellcheck disable=SC2086
    weir $change --for "$time"
    is "$change --for '$time': exit code 2" 2 "$code"
    has "  and what to write" "is not a duration; write it like 10min" "$said"
  done
done
weir rules mode login off --for 1h --reason "too strict"
has "a mode" "is in effect; undo it with: weir rules undo" "$said"
weir rules list
has "which is seen" "off (changed)" "$said"
for _ in 1 2 3 4 5; do weir check --ip 192.0.2.1 --path /login; done
is "and felt" 0 "$code"
weir rules undo
weir rules list
has "undo" "login  enforce  ip" "$said"
weir rules kill-switch on --reason incident
for _ in 1 2 3 4 5 6 7; do weir check --user 7; done
is "the kill switch lets all pass" 0 "$code"
weir rules kill-switch off
for _ in 1 2 3 4 5 6 7; do weir check --user 7; done
is "until it is off" 3 "$code"
sed 's/5.year/9\/year/' "$work/weir.yaml" >"$work/new.yaml"
weir rules apply "$work/new.yaml" --reason "more for all"
has "apply" "is in effect" "$said"
weir rules show
has "shows in the config" "9/year" "$said"
is "and the file is as it was" yes "$(grep -q 5/year "$work/weir.yaml" && echo yes)"
weir rules changes
has "changes: who and why" "more for all" "$said"
has "  and what is undone" "undone by" "$said"
weir rules reload
is "reload" 0 "$code"
weir rules mode login blink
is "a mode that is none: exit code 2" 2 "$code"

source "$(dirname "$0")/tls.bash"
authority ca
certificate ca server
start_server --config "$work/weir.yaml" --tls-cert "$work/server.pem" --tls-key "$work/server.key"
weir rules list
is "a port that speaks TLS: exit code 1" 1 "$code"
has "and what to do" "this port speaks TLS; write --admin https://127.0.0.1:$admin_port" "$said"
weir check --user 1
has "so for a check" "this port speaks TLS; write --http https://127.0.0.1:$http_port" "$said"
finish
