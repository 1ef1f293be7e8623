# weir doctor, of healthy and of broken servers: the test causes each finding once. Exit code 0 if nothing failed, else
# 1.
source "$(dirname "$0")/lib.bash"
doctor() { weir doctor --admin "127.0.0.1:$admin_port" "$@"; }
cat >"$work/well.yaml" <<'YAML'
trusted_proxies: [10.0.0.0/8]
rules:
  - {name: steps, per: user, limit: 5/hour}
YAML
start_server --config "$work/well.yaml" --state "$work/state"
exits "a server that is well: exit code 0" 0 doctor
has "its rules" "ok    rules enforced: 1 of 1" "$said"
has "its table" "ok    the table is 0.0 % full" "$said"
# Within a root of its own, the list of mounts need not have what the root is on; then doctor does not name it.
shows_mount() { awk -v place="$1" '$2 == place {found = 1} END {exit !found}' /proc/self/mounts; }
has "where its state is" "the state is in $work/state$(shows_mount / && echo ", on ")" "$said"
has "its trust" "ok    1 trusted proxy range" "$said"
has "its descriptors" "file descriptor limit" "$said"
has "its clock" "clock" "$said"
doctor --json
is "as JSON" 0 "$("$python" -c 'import json,sys; json.load(sys.stdin)["findings"][0]["what"]' <<<"$said"; echo $?)"
"$program" rules mode steps shadow --admin "127.0.0.1:$admin_port" >/dev/null
prints "what was changed" "rule steps was changed to shadow at runtime" doctor
has "no rule is enforced" "no rule is enforced" "$said"
"$program" rules kill-switch on --admin "127.0.0.1:$admin_port" >/dev/null
exits "the kill switch fails it" 1 doctor
has "and how to turn it" "-> weir rules kill-switch off" "$said"

cat >"$work/ill.yaml" <<'YAML'
trusted_proxies: [0.0.0.0/0, 8.0.0.0/5]
rules:
  - {name: steps, per: user, limit: 5/hour}
  - {name: sale, per: user, limit: 5/hour, expires_at: "2020-01-01T00:00:00Z"}
YAML
ulimit -n 4096 # enough for one port that is full, not for all of them
start_server --config "$work/ill.yaml" --connections 3000
exits "wide trust fails it" 1 doctor
has "it says so" "trusted_proxies covers every address (0.0.0.0/0)" "$said"
has "very wide trust" "very many addresses (8.0.0.0/5)" "$said"
has "a rule that has expired" "rule sale has expired" "$said"
has "no state file" "no state file: a restart" "$said"
has "too few descriptors" "raise the limit" "$said"
exits "--strict: exit code 1" 1 doctor --strict
# A link into memory is seen for what it is.
if [ "$(stat -f -c %T /dev/shm)" == tmpfs ] && shows_mount /dev/shm; then
  memory=$(mktemp -d -p /dev/shm)
  trap 'rm -rf "$memory"; cleanup' EXIT
  ln -s "$memory" "$work/link"
  start_server --state "$work/link/state"
  prints "a state behind a link" "the state is in $work/link/state, on tmpfs" doctor
  has "  and what it means" "it does not survive a reboot" "$said"
else
  echo "skip  a state behind a link: /dev/shm is no tmpfs in the list of mounts"
fi
exits "no server: exit code 1" 1 weir doctor --admin 127.0.0.1:1
has "and what to do" "If weir serve runs at another address, use --admin ADDR" "$said"
finish
