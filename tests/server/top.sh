# weir top, in a terminal of its own (tmux): what it shows, its keys, a small window, and what it leaves behind.
# Names that clients choose must not act upon the terminal.
source "$(dirname "$0")/lib.bash"
command -v tmux >/dev/null || { echo "skip  tmux is not there"; exit 77; }
cat >"$work/weir.yaml" <<'YAML'
rules:
  - {name: login, match: {path: /login}, per: ip, limit: 3/year, algorithm: fixed_window}
  - {name: steps, per: user, limit: 1000000/year}
YAML
start_server --config "$work/weir.yaml"
check() { curl -s -o "$work/answer" "$http/v1/check" -d "$1"; }
for _ in $(seq 20); do check '{"ip":"192.0.2.66","path":"/login"}'; done
check '{"user":"\u001b[2Jevil"}'
check '{"user":"\u202enimda\u2028"}'

once=$("$program" top --once --every 0.2 --admin "127.0.0.1:$admin_port")
is "without a terminal: exit code 0" 0 "$?"
has "it names the server" "2 rules" "$once"
has "the rules" "login" "$once"
has "who is denied most" "ip:192.0.2.66" "$once"
is "nothing in it acts upon a terminal" 0 "$(tr -cd '\033' <<<"$once" | wc -c)"
is "or turns what is read" 0 "$(grep -c $'\u202e\|\u2028' <<<"$once")"
most=$("$program" top --once --by hits --every 0.2 --admin "127.0.0.1:$admin_port")
has "but shows it" 'user:\xe2\x80\xaenimda\xe2\x80\xa8' "$most"

terminal() { tmux -L "weir$$" -f /dev/null "$@"; }
cleanup_top() { terminal kill-server 2>/dev/null; cleanup; }
trap cleanup_top EXIT
terminal new-session -d -x 120 -y 30 "$program top --every 0.2 --admin 127.0.0.1:$admin_port; echo left \$?; cat"
screen() { terminal capture-pane -p; }
shows() { screen | grep -q -- "$1"; }
is "live: the rules" yes "$(until_true 10 shows 'login *enforce *ip' && echo yes)"
is "who is denied most" yes "$(until_true 10 shows 'most denied' && echo yes)"
is "by name" yes "$(until_true 10 shows 'ip:192.0.2.66' && echo yes)"
terminal send-keys h
is "h: by hits" yes "$(until_true 10 shows 'most hits' && echo yes)"
for _ in $(seq 50); do check '{"user":"7"}'; done
is "rates move" yes "$(until_true 10 shows 'allowed .*[1-9]' && echo yes)"
terminal resize-window -x 40 -y 10
begins_with_head() { terminal capture-pane -p -J | head -n 1 | grep -q '^weir '; }
fits() { begins_with_head && [ "$(terminal capture-pane -p -J | LC_ALL=C.UTF-8 wc -L)" -le 40 ]; }
is "a small window: no line is too long, and the head is there" yes "$(until_true 10 fits && echo yes)"
terminal resize-window -x 120 -y 30
kill -STOP "$pid"
is "a server that does not answer: it says so" yes "$(until_true 15 shows 'the server does not answer' && echo yes)"
kill -CONT "$pid"
is "and goes on when it does" yes "$(until_true 15 shows 'login *enforce *ip' && echo yes)"
is "  without the complaint" no "$(shows 'the server does not answer' && echo yes || echo no)"
terminal send-keys q
is "q leaves" yes "$(until_true 15 shows 'left 0' && echo yes)"
is "and the screen is as it was" "" "$(screen | grep login)"

# A server without rules has work, too: limits that clients bring along.
start_server
timeout 600 "$program" bench --resp "127.0.0.1:$resp_port" --seconds 4 --rate 1000 --connections 2 >"$work/bench" 2>&1 &
bench=$!
is_busy() { curl -s -m 60 "http://127.0.0.1:$admin_port/admin/v1/status" | grep -q '"inline_allowed":[1-9]'; }
until_true 20 is_busy || is "the server is busy" yes no
once=$("$program" top --once --every 1 --admin "127.0.0.1:$admin_port")
wait "$bench"
is "limits that clients bring along are counted" yes "$(grep -Eq '^allowed +[1-9][0-9,.]*/s' <<<"$once" && echo yes)"
finish
