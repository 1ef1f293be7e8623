# The log: formats, levels, hostile input, and that the server never waits for the reader of the log.
#
# ctest runs it as `bash logs.sh PROGRAM SOURCE_DIR`.
source "$(dirname "$0")/lib.bash"

# valid FILE: how many lines it has, if each is a JSON object with what every line has.
valid() {
  "$python" - "$1" <<'PY'
import json, re, sys
text = open(sys.argv[1], "rb").read()
assert text.endswith(b"\n") and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", text)
unseen = "[\u0080-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
assert not re.search(unseen, text.decode("utf-8")), text
lines = [json.loads(line) for line in text.decode("utf-8")[:-1].split("\n")]
for line in lines:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["ts"]), line
    assert line["level"] in ("debug", "info", "warn", "error") and line["msg"], line
print(len(lines))
PY
}

is "an unknown format" 2 "$("$program" serve --log-format xml >/dev/null 2>&1; echo $?)"
has "an unknown level" "write debug, info, warn or error" "$("$program" serve --log-level loud 2>&1)"

# deny KEY: one check passes, the next is denied.
deny() { for _ in 1 2; do redis WEIR.LIMIT "$1" 1/year >/dev/null; done; }

# Hostile keys, as they are and in JSON.
start_server --log-format json --log-keys --log-denials 1000
for key in $'a\nb' $'\e[2J\r' $'\xff\xfe\xc3' '"},{"level":"error' "$(printf 'x%.0s' {1..3000})" \
  $'\u2028\u0085\x7f' $'a\u202eb\u2066\u200f\U000e0041' '\u0000'; do
  deny "$key"
done
ends_well "the server ends"
is "every line is valid JSON, whatever the key" 8 "$(valid "$work/err0")"
has "characters that turn the text around are escaped" '"key":"a\u202eb\u2066\u200f\udb40\udc41"' "$(cat "$work/err0")"
start_server --log-keys
deny $'a\nweir: forged \e[2J'
until_true 10 grep -q denied "$work/err1"
has "as text, too" 'key="a\x0aweir: forged \x1b[2J"' "$(cat "$work/err1")"
is "on one line" 1 "$(wc -l <"$work/err1")"
deny $'user\u202enimda\u2028weir: forged'
until_true 10 grep -q nimda "$work/err1"
has "nor can a key turn the text around" 'key="user\xe2\x80\xaenimda\xe2\x80\xa8weir: forged"' "$(cat "$work/err1")"

# The server logs reloads, and failed ones at every level.
cp "$source_dir/examples/weir.yaml" "$work/weir.yaml"
start_server --config "$work/weir.yaml" --log-level error --log-format json
kill -HUP "$pid"
eventually "SIGHUP is a reload" metric_is 'weir_config_reloads_total{outcome="ok"}' 1
echo "nonsense: 1" >"$work/weir.yaml"
kill -HUP "$pid"
until_true 10 grep -q "config reload failed, keeping the previous rules" "$work/err2"
is "--log-level error: only what went wrong" '"level":"error"' "$(grep -o '"level":"[a-z]*"' "$work/err2")"
is "as valid JSON" 1 "$(valid "$work/err2")"

# The example of docs/operate.md is what is written, but for times, waits and hashes.
plain() { sed -E 's/"(ts|retry_after|key_hash)":"[^"]*"/"\1":"-"/g'; }
mkdir "$work/docs"
cd "$work/docs" || exit 1
printf 'rules:\n  - {name: login, per: ip, limit: 5/5min}\n' >weir.yaml
n=${#server_pids[@]}
start_server --config weir.yaml --log-format json
printf 'rules:\n  - {name: login, per: ip, limit: 5/5min, mod: off}\n' >weir.yaml
until_true 20 grep -q "config reload failed, keeping the previous rules" "$work/err$n" || is "it is logged" yes no
for _ in {1..20}; do # a window may end in between
  [[ $(post '{"ip":"192.0.2.1"}' -H 'X-Request-Id: req-7') != *" 429 "* ]] || break
done
until_true 20 grep -q denied "$work/err$n" || is "a denial is logged" yes no
cd - >/dev/null || exit 1
is "the example of docs/operate.md is true" "$(grep -h '^{"ts"' "$source_dir/docs/operate.md" | plain)" \
  "$(plain <"$work/err$n")"

# Under the journal: levels in front.
: >"$work/err4"
JOURNAL_STREAM=$(stat -c '%d:%i' "$work/err4") start_server
deny k
until_true 10 grep -q denied "$work/err4"
has "lines for the journal begin with the level" "<6>denied protocol=resp rule=inline" "$(cat "$work/err4")"
JOURNAL_STREAM=1:1 start_server
deny k
until_true 10 grep -q denied "$work/err5"
has "but only if stderr is the journal" "weir: denied" "$(cat "$work/err5")"

# A pipe without a reader. A busy machine makes the server shed requests. The client counts a shed CL.THROTTLE as a
# denial, but the log has no line for it. So the servers of both floods never shed.
mkfifo "$work/err6"
exec {pipe}<>"$work/err6"
start_server --log-denials 1000000 --threads 2
denied=50000
flood() {
  timeout 600 "$program" bench --resp "127.0.0.1:$resp_port" --each-key --keys $((denied + 1)) --json \
    --command 'CL.THROTTLE one 0 1 86400 1' 2>&1
}
has "checks are answered without a reader of the log" "\"denied\": $denied, \"errors\": 0, \"unanswered\": 0" "$(flood)"
still_answers "a full pipe"
: >"$work/read"
timeout 600 cat <&"$pipe" >"$work/read" &
reader=$!
# The lines that came, and those of which the log says that they did not.
sum() { awk '/denied/{n++} /were lost/{sub(/.*dropped=/, ""); n += $0} END{print n + 0}' "$work/read"; }
all_told() { [ "$(sum)" == "$denied" ]; }
until_true 300 all_told
is "lines, and those reported as lost, are all denials" "$denied" "$(sum)"
has "lines were lost" "weir: log lines were lost dropped=" "$(cat "$work/read")"
echo "      $(grep -c denied "$work/read") of $denied lines were kept"
kill -TERM "$reader"  # and cat with it
wait "$reader" 2>/dev/null

# The end, with the pipe full again.
flood >/dev/null
kill -TERM "$pid"
eventually "a log without a reader does not delay the end" is_gone "$pid"
wait "$pid"
is "and the server ends well" 0 $?
exec {pipe}>&-
rm "$work/err6"

# A full disk.
ln -s /dev/full "$work/err7"
start_server --log-denials 1000000
has "checks are answered although the disk is full" "\"denied\": $denied, \"errors\": 0, \"unanswered\": 0" "$(flood)"
ends_well "and the server ends well"
rm "$work/err7"

# No stderr at all.
"$program" serve --http 127.0.0.1:0 --grpc off --resp off --admin off >"$work/closed" 2>&- &
started
until_true 20 is_announced "$work/closed" || is "it starts without stderr" yes no
http=$(awk '/^http /{print $2}' "$work/closed")
is "and denies" "200 429" "$(for _ in 1 2; do
  curl -s -o /dev/null -w '%{http_code} ' "$http/v1/check" -d '{"key":"k","limit":"1/year"}'; done | sed 's/ $//')"
finish
