# Options from a file: each by its name, the command line before it, and mistakes told with their place. Whatever option
# `weir serve` has, whoever added it, can stand there.
source "$(dirname "$0")/lib.bash"

cat >"$work/rules.yaml" <<'YAML'
rules:
  - {name: all, per: global, limit: 3/year}
YAML
cat >"$work/weir.conf" <<CONF
# where
http = "127.0.0.1:1"     # start_server says otherwise
grpc = off
config = '$work/rules.yaml'

  keys=500
connections = 20  # and no more
force = false
CONF
start_server --settings "$work/weir.conf"
is "the rules of the file hold" "200 200 200 429" "$(for i in 1 2 3 4; do
  curl -s -o /dev/null -m 60 -w '%{http_code}\n' "$http/v1/check" -d '{"user":"a"}'
done | paste -sd' ')"
is "the command line goes before it" no "$([ "$http_port" == 1 ] && echo yes || echo no)"

# refuses PART TEXT: with exit code 2 and this in the message.
refuses() {
  local out code name=${2//$'\n'/, }
  printf '%s\n' "$2" >"$work/bad.conf"
  out=$(timeout 600 "$program" serve --http :0 --grpc off --resp off --admin off --settings "$work/bad.conf" 2>&1)
  code=$?
  is "$name: exit code" "${3:-2}" "$code"
  has "$name: the message" "$1" "$out"
}
refuses "bad.conf:1: unknown setting 'htp'; did you mean http?" 'htp = ":0"'
refuses "bad.conf:1: unknown setting '--keys'; did you mean keys?" '--keys = 5'
refuses "bad.conf:1: unknown setting 'frobnicate'; weir serve --help lists them" 'frobnicate = 1'
refuses "bad.conf:1: unknown setting 'settings'" 'settings = other.conf'
refuses "bad.conf:2: --keys: 'many' is not a whole number from 1" '# a comment
keys = many'
refuses "bad.conf:2: keys is already set in line 1; keep one" 'keys = 5
keys = 6'
refuses "bad.conf:1: force must be true or false, not 'perhaps'" 'force = perhaps'
refuses "bad.conf:1: 'force' has no value; write \`name = value\`" 'force'
refuses "bad.conf:1: sections are not supported" '[serve]'
refuses "bad.conf:1: the closing quote is missing" 'state = "weir.state'
refuses "bad.conf:1: unexpected text after the closing quote" 'state = "weir" "state"'
refuses "bad.conf:3: force must be" 'htp = 1
keys = 7
force = 2'
refuses "bad.conf:2: --password-file: /nowhere/secret: cannot be opened" '
password-file = /nowhere/secret' 1
has "no such file" "--settings: /nowhere/weir.conf: cannot be opened" \
  "$(timeout 600 "$program" serve --settings /nowhere/weir.conf 2>&1)"
head -c 2000000 /dev/zero >"$work/bad.conf"
has "too long" "longer than 1048576 bytes" "$(timeout 600 "$program" serve --settings "$work/bad.conf" 2>&1)"

# Every option can stand in the file, whoever added it: none is refused as unknown.
lacking=''
for option in $("$program" serve --help | grep -oE '^ +--[a-z0-9-]+' | grep -oE '[a-z0-9][a-z0-9-]*'); do
  [[ $option != help && $option != settings ]] || continue
  printf '%s = \x01\n' "$option" >"$work/bad.conf"
  out=$(timeout 600 "$program" serve --http nowhere --settings "$work/bad.conf" 2>&1)
  [[ $out != *"unknown setting"* ]] || lacking+=" $option"
done
is "every option of serve is a setting" "" "$lacking"
finish
