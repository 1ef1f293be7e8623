# The server reloads its config whenever it changes: saved, renamed into place, reached by swapped links,
# removed and created again. Also by SIGHUP and the admin port. A damaged config changes nothing, costs at most a second
# and 64 MiB, and clients do not notice. reload_long.sh does the same alone on the machine, within the second.
source "$(dirname "$0")/lib.bash"

config() { printf 'rules:\n  - {name: a, per: ip, limit: %s/hour}\n' "$1"; }
mkdir -p "$work/mount/..1" "$work/mount/..2" "$work/etc"
config 101 >"$work/mount/..1/weir.yaml"
ln -s ..1 "$work/mount/..data"
ln -s ..data/weir.yaml "$work/mount/weir.yaml"
ln -s "$work/mount/weir.yaml" "$work/etc/weir.yaml"
start_server --config "$work/etc/weir.yaml"

limit() { get /admin/v1/rules | grep -o '"limits":\["[0-9]*' | grep -o '[0-9]*$'; }
status() { get /admin/v1/status | grep -o "\"$1\":[^,}]*" | head -1; }
limit_is() { [ "$(limit)" == "$1" ]; }
comes() { until_true 20 limit_is "$2"; is "$1" "$2" "$(limit)"; }

# A client sends checks meanwhile, each on a new connection, and writes down each status that is not 200.
: >"$work/failed"
(
  while [ ! -e "$work/stop" ]; do
    code=$(code_of "$http/v1/check" -d '{"user":"1"}')
    [ "$code" == 200 ] || echo "$code" >>"$work/failed"
    echo x >>"$work/asked"
    sleep 0.05
  done
) &
asker=$!
server_pids+=("$asker")

is "at first" 101 "$(limit)"
config 102 >"$work/mount/..1/weir.yaml"
comes "saved" 102
config 103 >"$work/mount/..1/new"
mv "$work/mount/..1/new" "$work/mount/..1/weir.yaml"
comes "renamed into place" 103
config 104 >"$work/mount/..2/weir.yaml"
ln -s ..2 "$work/mount/..data_tmp"
mv -T "$work/mount/..data_tmp" "$work/mount/..data"
rm -r "$work/mount/..1"
comes "the links of a mounted volume swapped" 104
config 105 >"$work/mount/..2/weir.yaml"
comes "saved in the new folder" 105
rm "$work/mount/..2/weir.yaml"
is_gone_told() { [ "$(status ok)" == '"ok":false' ]; }
until_true 20 is_gone_told || is "a missing file is reported" yes no
is "gone: the rules stay" 105 "$(limit)"
config 106 >"$work/mount/..2/weir.yaml"
comes "created again" 106
rm "$work/etc/weir.yaml"
config 107 >"$work/etc/weir.yaml"
comes "a link that became a file" 107
before=$(status reloads_ok)
touch "$work/etc/weir.yaml"
cp "$work/etc/weir.yaml" "$work/same" && cp "$work/same" "$work/etc/weir.yaml"
sleep 0.5
is "touched, or saved as it was: nothing" "$before" "$(status reloads_ok)"

# damaged NAME COMMAND...: replaces the file by the output of the command. The rules stay, and the server reports it.
damaged() {
  local failed
  failed=$(status reloads_failed)
  "${@:2}" >"$work/damage" && mv "$work/damage" "$work/etc/weir.yaml"
  has_failed() { [ "$(status reloads_failed)" != "$failed" ]; }
  eventually "$1: the reload fails" has_failed
  is "$1: the rules stay" "107" "$(limit)"
  is "$1: reported in the status" '"ok":false' "$(status ok)"
  is "$1: and in the metrics" 0 "$(successful)"
  took "$1: seconds of a reading" "$(timed_reading)" 1
}
successful() { metric weir_config_last_reload_successful; }
# timed_reading: the file is read once more, and the answer comes when that is done.
timed_reading() {
  curl -s -m 60 -o "$work/reading" -w '%{time_total}' "http://127.0.0.1:$admin_port/admin/v1/reload" \
    -H 'Content-Type: application/json' -d '{}'
}
half() { config 107 | head -c 30; }
bomb() {
  echo 'a0: &a0 [x, x, x, x, x, x, x, x, x]'
  for i in 1 2 3 4 5 6 7; do
    echo "a$i: &a$i [*a$((i - 1)), *a$((i - 1)), *a$((i - 1)), *a$((i - 1)), *a$((i - 1)), *a$((i - 1)), *a$((i - 1))]"
  done
}
# Flow sequences and scalars as large as a file may be: they are parsed to the end before it is known what is wrong.
deep() { printf 'rules: ' && head -c 200000 /dev/zero | tr '\0' '['; }
wide() { printf 'rules: [' && yes '{name: a, per: ip, limit: 1/s},' | head -c 900000; }
is "the metrics say that the last reload succeeded" 1 "$(successful)"
# Clears the highest memory use that the kernel has recorded, so that it counts from here on.
echo 5 >"/proc/$pid/clear_refs"
rss=$(rss_kib "$pid")
damaged "an empty file" true
damaged "half a file" half
has "with its place" "weir.yaml:2:" "$(get /admin/v1/status)"
damaged "a key twice" printf 'rules:\n  - {name: a, name: b, limit: 1/s}\n'
damaged "a NUL" printf 'rules:\0\n'
damaged "100 MiB" head -c 104857600 /dev/zero
damaged "an alias bomb" bomb
damaged "deep nesting" deep
damaged "a long list without an end" wide
rm "$work/etc/weir.yaml" && mkfifo "$work/etc/weir.yaml"
is_told() { get /admin/v1/status | grep -q "is not a regular file"; }
until_true 10 is_told || is "a FIFO is reported" yes no
is "a FIFO: the rules stay" 107 "$(limit)"
rm "$work/etc/weir.yaml"
most=$(awk '/^VmHWM/{print $2}' "/proc/$pid/status")
at_most "KiB that all that took at once" $((most - rss)) 65536
printf '\xEF\xBB\xBF' >"$work/bom" && config 108 >>"$work/bom" && mv "$work/bom" "$work/etc/weir.yaml"
comes "a byte order mark is no damage" 108
is "and the metrics say that the reload succeeded" 1 "$(successful)"

# Replaced again and again, while it is read: in the end it is the last one.
for i in $(seq 60); do
  config $((200 + i)) >"$work/etc/next"
  mv "$work/etc/next" "$work/etc/weir.yaml"
done
comes "replaced sixty times at once" 260

touch "$work/stop"
wait "$asker" 2>/dev/null
is "no check failed meanwhile" "" "$(sort "$work/failed" | uniq -c)"
is "and checks were sent" yes "$([ -s "$work/asked" ] && echo yes)"

# --- only on request --------------------------------------------------------------------------------------------------
config 300 >"$work/plain.yaml"
start_server --config "$work/plain.yaml" --no-watch
config 301 >"$work/plain.yaml"
sleep 2.5
is "--no-watch: the server does not read it" 300 "$(limit)"
kill -HUP "$pid"
comes "SIGHUP" 301
config 302 >"$work/plain.yaml"
curl -s -m 60 "http://127.0.0.1:$admin_port/admin/v1/reload" -H 'Content-Type: application/json' -d '{}' >/dev/null
is "the admin port" 302 "$(limit)"
finish
