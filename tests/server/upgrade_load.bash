# Reloads and upgrades under load, for upgrade.sh and upgrade_long.sh. No client is refused or reset. The last process
# reports as used exactly what clients were granted, by all processes together.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

# successor_of PID: the one that it has started.
successor_of() { pgrep -P "$1" | head -1; }
has_successor() { [ -n "$(successor_of "$1")" ]; }
# start_successor: sends SIGUSR2 to $pid. Sets old to that process, and pid to the process that it starts.
start_successor() {
  old=$pid
  kill -USR2 "$old"
  eventually "$old starts a successor" has_successor "$old"
  pid=$(successor_of "$old")
  server_pids+=("$pid")
}

# upgrade: starts a successor of $pid, and waits until it serves and the old process has ended.
upgrade() {
  local announced
  announced=$(grep -c '^ready' "$work/out0")
  start_successor
  is_ready_again() { (($(grep -c '^ready' "$work/out0") > announced)); }
  until_true 20 is_ready_again || { echo "FAIL  $pid was not ready"; return 1; }
  until_true 20 has_ended "$old" || { echo "FAIL  $old did not go"; return 1; }
}

# upgrade_under_load RATE SECONDS RELOADS UPGRADES
upgrade_under_load() {
  local rate=$1 seconds=$2 reloads=$3 upgrades=$4 limit=$((10 * $1 * $2)) load calls='' first i left
  cp "$source_dir/examples/weir.yaml" "$work/weir.yaml"
  start_server --state "$work/state" --config "$work/weir.yaml" --threads 2
  first=$pid
  timeout $((seconds + 60)) "$python" "$source_dir/tests/server/new_connections.py" "$http_port" "$rate" "$seconds" \
    "{\"key\":\"shared\",\"limit\":\"$limit/year\",\"algorithm\":\"fixed_window\"}" --keep 10 \
    >"$work/load" 2>"$work/err_load" &
  load=$!
  : >"$work/calls"
  if "$python" -c 'import grpc' 2>/dev/null; then
    timeout $((seconds + 60)) "$python" "$source_dir/tests/server/watch_health.py" "$grpc_port" calls \
      $((seconds - 1)) >"$work/calls" &
    calls=$!
  fi
  sleep 1
  for ((i = 1; i <= reloads; ++i)); do
    kill -HUP "$pid"
    sleep "$(awk "BEGIN {print ($seconds - 3) / $reloads / 3}")"
    ((i * upgrades / reloads > (i - 1) * upgrades / reloads)) && upgrade
  done
  wait "$load"
  load=$(cat "$work/load")
  echo "      $load"
  has "no connection was refused or reset" "failed=0 " "$load"
  if [ -n "$calls" ]; then
    wait "$calls"
    echo "      gRPC: $(cat "$work/calls")"
    has "nor was a gRPC client" "failed=0 " "$(cat "$work/calls")"
  fi
  pace "new connections a second" "$(sed 's/.*connections_a_second=\([0-9]*\).*/\1/' <<<"$load")" \
    $((rate * 9 / 10))
  # The limit is never met, so each grant is one more that is spent; asked of the process that is left.
  left=$(redis weir.limit shared "$limit/year" algorithm fixed_window cost 0 | sed -n 's/.*remaining \([0-9]*\).*/\1/p')
  is "exactly what was granted is used" "$(grep -o 'allowed=[0-9]*' <<<"$load")" "allowed=$((limit - left))"
  is "and no client was denied" "denied=0" "$(grep -o 'denied=[0-9]*' <<<"$load")"
  is "the rest can be charged" "allowed 1" "$(redis weir.limit shared "$limit/year" algorithm fixed_window \
    cost "$left" | cut -d' ' -f1,2)"
  is "and no more" "allowed 0" "$(redis weir.limit shared "$limit/year" algorithm fixed_window | cut -d' ' -f1,2)"
  is "there were so many processes" "$((upgrades + 1))" "$(grep -c '^ready' "$work/out0")"
  is "each rules file was read" "$reloads" "$(grep -c 'config reloaded' "$work/err0")"
  wait "$first"
  is "the first of them ended well" 0 $?
  is "and so did the other processes" 0 "$(grep -c 'stopped before' "$work/err0")"
}
