# The commands that query a running server: weir check, weir keys, weir rules. Runs them as an operator types them,
# against a server with rules: exit codes, output, and what they change.
source "$(dirname "$0")/lib.bash"
cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: login, match: {path: /login}, per: ip, limit: 3/year, algorithm: fixed_window}
  - {name: steps, per: user, limit: 5/year, algorithm: fixed_window}
  - {name: all, match: {path: /all}, per: global, limit: 2/year, algorithm: fixed_window}
YAML
start_server --config "$work/weir.yaml" --state "$work/state"

# query WORDS...: as `weir` in lib.bash, about this server. The output is put on one line.
query() {
  local where=(--admin "127.0.0.1:$admin_port")
  [ "$1" != check ] || where=(--http "127.0.0.1:$http_port")
  said=$("$program" "$@" "${where[@]}" 2>&1)
  code=$?
  said=$(paste -sd' ' <<<"$said")
}

exits "a check that passes: exit code 0" 0 query check --user 42
has "and says what is left" "allowed by steps: 4 of 5 left" "$said"
prints "a peek charges nothing" "4 of 5 left" query check --user 42 --peek
for _ in 1 2 3 4; do query check --user 42; done
exits "a denial: exit code 3" 3 query check --user 42
has "and when to come again" "denied by steps: 0 of 5 left, retry in " "$said"
prints "as JSON, what the server said" '"remaining":0' query check --user 42 --json
query check --ip 192.0.2.1 --path /other
is "without a rule" "allowed: no_rule" "$said"
prints "by a limit of its own" "allowed: 1 of 2 left" query check --key a --limit 2/year
exits "an invalid limit: exit code 1" 1 query check --key a --limit 2/parsec
has "and why" "refused the request: " "$said"
exits "no server: exit code 1" 1 weir check --user 1 --http 127.0.0.1:1
has "and what to do" "If weir serve runs at another address, use --http ADDR" "$said"

# A listener that accepts nothing, with a full backlog: the kernel drops what else arrives. A connect that blocked
# would take minutes.
python3 - "$work/full.port" <<'PY' &
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0), backlog=0)
clients = [socket.socket() for _ in range(4)]
for client in clients:
    client.setblocking(False)
    client.connect_ex(listener.getsockname())
with open(sys.argv[1], "w") as file:
    print(listener.getsockname()[1], file=file)
time.sleep(600)
PY
started
until_true 60 test -s "$work/full.port" || is "a listener starts" yes no
exits "a server that does not accept: exit code 1" 1 weir top --once --admin "127.0.0.1:$(cat "$work/full.port")"
has "and why" "Connection timed out" "$said"
kill "$pid"

prints "explain: every rule" "+ steps" query keys explain --user 42 --path /x
has "  also the rules that do not apply" "- login" "$said"
has "  with what is left" "5/year (fixed_window)" "$said"
query keys reset steps --user 42
is "reset" "steps: reset" "$said"
query keys reset steps --user 42
is "again" "steps: nothing to reset" "$said"
prints "and it counts from the beginning" "4 of 5 left" query check --user 42
query check --path /all
query keys reset all
is "a rule that counts by nothing needs no attributes" "all: reset" "$said"
exits "one that does needs them: exit code 1" 1 query keys reset steps
exits "a rule that is not there: exit code 1" 1 query keys reset stepz --user 42
exits "as JSON, too" 1 query keys reset stepz --user 42 --json
has "  with what the server said" '"status":404' "$said"
exits "without a request: exit code 2" 2 query keys explain
prints "ban" "banned until " query keys ban --user 66 --for 1h --reason abuse
ban=$(grep -o 'undo [0-9]*' <<<"$said")
exits "a banned client is denied" 3 query check --user 66
query rules $ban
exits "until it is undone" 0 query check --user 66
exits "ban as JSON: exit code 0" 0 query keys ban --user 67 --for 1h --json
has "  and what came of it" '"rule":"ban-' "$said"
exits "and its end" 0 query rules undo --json
exits "a change that is not there, as JSON: exit code 1" 1 query rules undo 999999 --json
prints "the policy as JSON" '"hash":"' query rules show --json
prints "top names the busiest" "user:42" query keys top --by hits

prints "rules: a head" "rule   mode     per" query rules list
has "and each rule" "login  enforce  ip" "$said"
for change in 'rules mode login off' 'rules kill-switch on' 'keys ban --user 7'; do
  for time in '' soon; do
    # shellcheck disable=SC2086
    exits "$change --for '$time': exit code 2" 2 query $change --for "$time"
    has "  and what to write" "is not a duration; write it like 10min" "$said"
  done
done
prints "a mode" "is in effect; undo it with: weir rules undo" query rules mode login off --for 1h --reason "too strict"
prints "which is seen" "off (changed)" query rules list
for _ in 1 2 3 4 5; do query check --ip 192.0.2.1 --path /login; done
is "and requests pass" 0 "$code"
query rules undo
prints "undo" "login  enforce  ip" query rules list
query rules kill-switch on --reason incident
for _ in 1 2 3 4 5 6 7; do query check --user 7; done
is "the kill switch lets all pass" 0 "$code"
query rules kill-switch off
for _ in 1 2 3 4 5 6 7; do query check --user 7; done
is "until it is off" 3 "$code"
sed 's/5.year/9\/year/' "$work/weir.yaml" >"$work/new.yaml"
prints "apply" "is in effect" query rules apply "$work/new.yaml" --reason "more for all"
prints "shows in the config" "9/year" query rules show
is "and the file is as it was" yes "$(grep -q 5/year "$work/weir.yaml" && echo yes)"
prints "changes: the reason" "more for all" query rules changes
has "  and what is undone" "undone by" "$said"
exits "reload" 0 query rules reload
exits "an unknown mode: exit code 2" 2 query rules mode login blink
has "and whose help lists them" "See weir rules mode --help" "$said"
prints "an argument that is missing" "See weir plan set --help" query plan set user:42
finish
