# Options from a file, by name. The command line takes precedence, and errors name their line. Every option of `weir
# serve` can be in the file.
source "$(dirname "$0")/lib.bash"

echo 'rules: [{name: all, per: global, limit: 3/year}]' >"$work/rules.yaml"
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
is "the rules of the file apply" "200 200 200 429" "$(for i in 1 2 3 4; do
  code_of "$http/v1/check" -d '{"user":"a"}' && echo
done | paste -sd' ')"
is "the command line takes precedence" no "$([ "$http_port" == 1 ] && echo yes || echo no)"

# refuses_text PART TEXT [CODE]: of the settings file.
refuses_text() {
  echo "# ${2//$'\n'/, }"
  printf '%s\n' "$2" >"$work/bad.conf"
  refuses "${3:-2}" "$1" serve --http :0 --grpc off --resp off --admin off --settings "$work/bad.conf"
}
refuses_text "bad.conf:1: unknown setting 'htp'; did you mean http?" 'htp = ":0"'
refuses_text "bad.conf:1: unknown setting '--keys'; did you mean keys?" '--keys = 5'
refuses_text "bad.conf:1: unknown setting 'frobnicate'; weir serve --help lists them" 'frobnicate = 1'
refuses_text "bad.conf:1: unknown setting 'settings'" 'settings = other.conf'
refuses_text "bad.conf:2: --keys: 'many' is not a whole number from 1" '# a comment
keys = many'
refuses_text "bad.conf:2: keys is already set in line 1; keep one" 'keys = 5
keys = 6'
refuses_text "bad.conf:1: force must be true or false, not 'perhaps'" 'force = perhaps'
refuses_text "bad.conf:1: 'force' has no value; write \`name = value\`" 'force'
refuses_text "bad.conf:1: sections are not supported" '[serve]'
refuses_text "bad.conf:1: the closing quote is missing" 'state = "weir.state'
refuses_text "bad.conf:1: unexpected text after the closing quote" 'state = "weir" "state"'
printf '%s\n' 'htp = 1' 'keys = 7' 'force = 2' >"$work/bad.conf"
exits "several mistakes: exit code" 2 weir serve --http :0 --grpc off --resp off --admin off --settings "$work/bad.conf"
has "  each with its line" "bad.conf:3: force must be" "$said"
refuses_text "bad.conf:2: --password-file: /nowhere/secret: cannot be opened" '
password-file = /nowhere/secret' 1
prints "no such file" "--settings: /nowhere/weir.conf: cannot be opened" weir serve --settings /nowhere/weir.conf
head -c 2000000 /dev/zero >"$work/bad.conf"
prints "too long" "longer than 1048576 bytes" weir serve --settings "$work/bad.conf"

# Every option of `weir serve` can be in the file: none is refused as unknown.
lacking=''
for option in $("$program" serve --help | grep -oE '^ +--[a-z0-9-]+' | grep -oE '[a-z0-9][a-z0-9-]*'); do
  [[ $option != help && $option != settings ]] || continue
  printf '%s = \x01\n' "$option" >"$work/bad.conf"
  out=$(timeout 600 "$program" serve --http nowhere --settings "$work/bad.conf" 2>&1)
  [[ $out != *"unknown setting"* ]] || lacking+=" $option"
done
is "every option of serve is a setting" "" "$lacking"
finish
