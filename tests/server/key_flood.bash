# A flood of new keys, for key_flood.sh and key_flood_long.sh. Used-up keys stay used up, memory stays within its
# budget, and the server still answers others. Prints what it measured.

source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
algorithms=(token_bucket leaky_meter fixed_window sliding_window sliding_log)

ask() { redis weir.limit "$1" "$2" algorithm "$3"; }

# The error for a new connection when the flood leaves no time for it.
turned_away="ERR server overloaded; request not evaluated; retry shortly"

# probe_victims FILE: one question about each victim, and a line of what came of it: denied, away, or what was said.
probe_victims() {
  local algorithm said
  for algorithm in "${algorithms[@]}"; do
    said=$(ask "victim:$algorithm" 5/month "$algorithm")
    if [[ "$said" == "allowed 0 "* ]]; then
      echo denied
    elif [ "$said" == "$turned_away" ]; then
      echo away
    else
      echo "wrong: victim:$algorithm was told: $said"
    fi
  done >>"$1"
}

# probe_until FILE ANSWERS: asks for the victims until the file is there.
probe_until() { until [ -e "$1" ]; do probe_victims "$2"; done; }

# stay_spent WHEN ANSWERS: each of them is a denial, or the error of an overloaded server.
stay_spent() {
  local asked denied
  asked=$(wc -l <"$2") denied=$(grep -c '^denied$' "$2")
  echo "      $1: $asked questions about spent keys, $denied denied, $(grep -c '^away$' "$2") turned away"
  is "$1: none was allowed, and none got another answer" "" "$(grep '^wrong' "$2" | head -5)"
  pace "$1: of a hundred questions, decided" $((100 * denied / (asked + !asked))) 50
}

# load ARGUMENTS...: what `weir bench` says, as JSON; some answers may be errors.
load() { timeout 3000 "$program" bench --json --resp ":$resp_port" "$@" 2>>"$work/bench_err"; }

# spend_victims: five of seven are allowed, by each algorithm.
spend_victims() {
  local algorithm allowed i
  for algorithm in "${algorithms[@]}"; do
    allowed=0
    for i in 1 2 3 4 5 6 7; do
      [[ "$(ask "victim:$algorithm" 5/month "$algorithm")" == "allowed 1 "* ]] && allowed=$((allowed + 1))
    done
    is "$algorithm: five of seven are allowed before the flood" 5 "$allowed"
  done
}

# The limits of the flood. One request uses up a key of the last, so that in the end no key can be evicted for others.
floods=("9/month algorithm token_bucket" "9/month algorithm fixed_window" "9/month algorithm sliding_window"
  "9/month algorithm sliding_log" "1/month algorithm token_bucket")

# The same for keys that are known: what the flood is held against. Those of the last are spent.
steadies=("1000000/month algorithm token_bucket" "1000000/month algorithm fixed_window"
  "1000000/month algorithm sliding_window" "200/month algorithm sliding_log" "1/month algorithm token_bucket")

# steady SECONDS KEYS: requests at full speed, with KEYS known keys of each limit, and fewer of logs, which are larger.
# Leaves known, a rate for each limit.
steady() {
  local limit out keys n=0
  known=()
  for limit in "${steadies[@]}"; do
    n=$((n + 1))
    [[ $limit == *_log ]] && keys=$(($2 / 20)) || keys=$2
    load --each-key --keys "$keys" --command "WEIR.LIMIT s$n{key} $limit" >/dev/null
    out=$(load --pid "$pid" --seconds "$1" --warmup 0.3 --keys "$keys" --command "WEIR.LIMIT s$n{key} $limit")
    known+=("$(number checks_per_second "$out")")
    printf '      known keys, %s: %s a second, %s ns of the server each\n' "$limit" "${known[-1]}" \
      "$(number server_ns_per_check "$out")"
  done
}

# bystander SECONDS: a client that has nothing to do with the flood.
bystander() { load --seconds "$1" --warmup 0.3 --keys 10000 --rate 2000 --connections 4; }

sum() { awk "BEGIN {print $1 + $2}"; }

# flood KEYS: one fifth of them by each limit. Leaves flood_seconds, flood_errors, and in steady_seconds how long as
# many questions about known keys would have taken.
flood() {
  local each=$(($1 / 5)) n=0 limit out
  flood_seconds=0 flood_errors=0 steady_seconds=0
  for limit in "${floods[@]}"; do
    n=$((n + 1))
    out=$(load --pid "$pid" --each-key --keys "$each" --command "WEIR.LIMIT f$n{key} $limit")
    is "flood $n, $limit: $each keys, all answered" "$each" "$(number checks "$out")"
    printf '      %s a second, %s ns of the server each, %s errors\n' "$(number checks_per_second "$out")" \
      "$(number server_ns_per_check "$out")" "$(number errors "$out")"
    pace "flood $n: percent of the rate of known keys" \
      $((100 * $(number checks_per_second "$out") / known[n - 1])) 35
    flood_seconds=$(sum "$flood_seconds" "$(sed -n 's/.*"seconds": \([0-9.]*\).*/\1/p' <<<"$out")")
    steady_seconds=$(sum "$steady_seconds" "$each/${known[n - 1]}")
    flood_errors=$((flood_errors + $(number errors "$out")))
  done
}

# flood_test KEYS BUDGET SECONDS STEADY: the whole test, with BUDGET bytes of memory. It watches other clients for
# SECONDS. Before, it checks known keys of each limit for STEADY seconds.
flood_test() {
  local keys=$1 budget=$2 seconds=$3 known before during peak_kib bound_kib
  start_server --memory "$budget"
  spend_victims
  probe_until "$work/over" "$work/probed" &
  local prober=$!
  bystander "$(awk "BEGIN {print 5 * ($4 + 1)}")" >"$work/before" &
  local beside=$!
  steady "$4" $((budget / 1000))
  wait "$beside"
  bystander "$seconds" >"$work/during" &
  beside=$!
  flood "$keys"
  wait "$beside"
  touch "$work/over"
  wait "$prober"
  before=$(cat "$work/before") during=$(cat "$work/during")
  stay_spent "during the flood" "$work/probed"
  probe_victims "$work/after"
  stay_spent "after the flood" "$work/after"
  is "errors ($flood_errors) are few: connections that are refused" yes \
    "$([ "$flood_errors" -le "$((keys / 5))" ] && echo yes)"
  peak_kib=$(awk '/^VmHWM/{print $2}' "/proc/$pid/status")
  bound_kib=$((budget / 1024 * 115 / 100 + 64 * 1024))
  is "memory: at most $((peak_kib / 1024)) MiB, budget $((budget >> 20)) MiB, bound $((bound_kib / 1024)) MiB" yes \
    "$([ "$peak_kib" -le "$bound_kib" ] && echo yes)"
  pace "the flood: $keys keys in $flood_seconds s, known ones in $steady_seconds s: percent" \
    "$(awk "BEGIN {print int(100 * $steady_seconds / $flood_seconds)}")" 50
  took "p99 of a bystander in us (beside known keys $(($(number p99_ns "$before") / 1000)))" \
    $(($(number p99_ns "$during") / 1000)) $((3 * $(number p99_ns "$before") / 1000))
  pace "and answered, of 2000 a second" "$(number checks_per_second "$during")" 1000
  is "and no errors" 0 "$(number errors "$during")"
  still_answers "after the flood"
}
