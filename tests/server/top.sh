# weir top in a terminal (tmux): what it shows, its keys, a small window, and what it leaves behind. Names that clients
# chose must not control the terminal.
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

exits "without a terminal: exit code 0" 0 weir top --once --every 0.2 --admin "127.0.0.1:$admin_port"
has "it names the server" "2 rules" "$said"
has "the rules" "login" "$said"
has "the client that is denied most" "ip:192.0.2.66" "$said"
is "nothing in it acts upon a terminal" 0 "$(tr -cd '\033' <<<"$said" | wc -c)"
is "or changes the direction of the text" 0 "$(grep -c $'\u202e\|\u2028' <<<"$said")"
prints "but it is shown" 'user:\xe2\x80\xaenimda\xe2\x80\xa8' \
  weir top --once --by hits --every 0.2 --admin "127.0.0.1:$admin_port"

terminal() { tmux -L "weir$$" -f /dev/null "$@"; }
cleanup_top() { terminal kill-server 2>/dev/null; cleanup; }
trap cleanup_top EXIT
terminal new-session -d -x 120 -y 30 "$program top --every 0.2 --admin 127.0.0.1:$admin_port; echo left \$?; cat"
screen() { terminal capture-pane -p; }
shows() { screen | grep -q -- "$1"; }
eventually "live: the rules" shows 'login *enforce *ip'
eventually "the clients that are denied most" shows 'most denied'
eventually "by name" shows 'ip:192.0.2.66'
terminal send-keys h
eventually "h: by hits" shows 'most hits'
for _ in $(seq 50); do check '{"user":"7"}'; done
eventually "rates change" shows 'allowed .*[1-9]'
terminal resize-window -x 40 -y 10
begins_with_head() { terminal capture-pane -p -J | head -n 1 | grep -q '^weir '; }
fits() { begins_with_head && [ "$(terminal capture-pane -p -J | LC_ALL=C.UTF-8 wc -L)" -le 40 ]; }
eventually "a small window: no line is too long, and the head is there" fits
terminal resize-window -x 120 -y 30
kill -STOP "$pid"
eventually "a server that does not answer: it says so" shows 'the server does not answer'
kill -CONT "$pid"
eventually "and goes on when it does" shows 'login *enforce *ip'
is "  without the complaint" no "$(shows 'the server does not answer' && echo yes || echo no)"
terminal send-keys q
eventually "q leaves" shows 'left 0'
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
