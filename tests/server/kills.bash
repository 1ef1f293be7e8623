# kills N: kills a server N times while it answers, with a million keys in its state file. For kills.sh and
# kills_long.sh; kills.py has the checks.

source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

kills() {
  local seed=${WEIR_SEED:-$RANDOM$RANDOM}
  echo "      seed $seed"
  timeout 1800 "$python" "$(dirname "${BASH_SOURCE[0]}")/kills.py" "$program" "$work/state" "$1" "$seed" \
    >"$work/said" 2>&1
  is "$1 times kill -9 under load" 0 $?
  grep -v '^weir: denied' "$work/said" | sed 's/^/      /'
  is "every answer stays true" 0 "$(grep -c '^failed' "$work/said")"
  # Others may have the processor meanwhile: then only what the start itself takes has the same bound.
  took "seconds until ready, at the slowest start" "$(sed -n 's/^ready_max=//p' "$work/said")" 1
  took "seconds of processor time of a start" "$(sed -n 's/^busy_max=//p' "$work/said")" 1
}
