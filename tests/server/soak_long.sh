# Ten minutes of everything at once: HTTP, RESP and gRPC with connections that come and go, reloads, invalid bytes.
# Memory, descriptors and the slowest answers are the same in the last third as in the first, and no request fails.
# Memory means what belongs to the process alone: the table is a file, and fills up.
#
# SECONDS_OF_SOAK=20 runs a shorter form. Keeps a log with a line for each round, and prints the thirds.
source "$(dirname "$0")/lib.bash"
duration=${SECONDS_OF_SOAK:-600}
here=$(dirname "$0")
rules() { # LIMIT
  cat >"$work/.rules" <<TEXT
rules:
  - {name: user,  per: 'header:x-user', limit: $1/s burst 1000000}
  - {name: envoy, per: 'entry:user',    limit: $1/s burst 1000000}
  - {name: login, per: ip, match: {path: /login}, limit: 5/min}
TEXT
  mv "$work/.rules" "$work/rules.yaml"
}
rules 50000
start_server --config "$work/rules.yaml" --state "$work/state" --memory 64000000

# load NAME ARGUMENTS...: a bench that notes its errors and its slowest hundredth.
load() {
  local name=$1 out
  shift
  out=$(timeout 600 "$program" bench --json --connections 8 --warmup 0 --seconds 1.5 --rate 1000 "$@" 2>&1)
  awk -v name="$name" '{
    ok = match($0, /"errors": [0-9]+/); errors = ok ? substr($0, RSTART + 10, RLENGTH - 10) + 0 : -1
    match($0, /"unanswered": [0-9]+/); errors += substr($0, RSTART + 14, RLENGTH - 14)
    match($0, /"p99_ns": [0-9]+/); p99 = substr($0, RSTART + 10, RLENGTH - 10)
    match($0, /"checks": [0-9]+/); print name, errors, p99, substr($0, RSTART + 10, RLENGTH - 10)
  }' <<<"$out" >>"$work/loads"
}
end=$((SECONDS + duration)) round=0
while ((SECONDS < end)); do
  round=$((round + 1))
  load http --http ":$http_port" &
  http_load=$!
  load resp --resp ":$resp_port" --keys 5000000 &
  resp_load=$!
  load grpc --grpc ":$grpc_port" &
  grpc_load=$!
  rules $((50000 + round % 2))
  kill -HUP "$pid"
  timeout 600 "$python" "$here/crossed.py" "$round" 60 "$2/fuzz/corpus" "$http_port" "$resp_port" "$grpc_port" \
    >>"$work/crossed" 2>&1 || echo "round $round: exit code $?" >>"$work/crossed"
  wait "$http_load" "$resp_load" "$grpc_load"
  # Between the rounds, when the connections of this one are gone.
  sleep 0.3
  echo "$(awk '/^RssAnon/{print $2}' "/proc/$pid/status") $(ls "/proc/$pid/fd" | wc -l)" >>"$work/rounds"
  is_gone "$pid" && break
done
is "it lived through $round rounds" no "$(is_gone "$pid" && echo yes || echo no)"
is "errors, of $(awk '{n += $4} END {print n}' "$work/loads") requests" 0 \
  "$(awk '$2 != 0 {n += 1} END {print n + 0}' "$work/loads")"
awk '$2 != 0' "$work/loads" | head -5
is "bytes of no protocol ended in time, in all rounds" "$round times 56 sent" \
  "$(grep -c '^56 sent$' "$work/crossed") times 56 sent$(grep -v '^56 sent$' "$work/crossed" | head -3)"

# thirds NAME FACTOR SLACK VALUES: the median of the last third is at most FACTOR times that of the first, plus SLACK.
thirds() {
  local name=$1 factor=$2 slack=$3 first last third
  mapfile -t values
  third=$((${#values[@]} / 3))
  ((third > 0)) || { is "$name: enough rounds" yes no; return; }
  first=$(printf '%s\n' "${values[@]:0:third}" | sort -n | sed -n "$(((third + 1) / 2))p")
  last=$(printf '%s\n' "${values[@]: -third}" | sort -n | sed -n "$(((third + 1) / 2))p")
  is "$name: $first in the first third, $last in the last" yes \
    "$(awk -v a="$first" -v b="$last" -v f="$factor" -v s="$slack" 'BEGIN {if (b <= a * f + s) print "yes"}')"
}
thirds "memory of its own in KiB" 1 4096 < <(cut -d' ' -f1 "$work/rounds")
thirds "descriptors" 1 4 < <(cut -d' ' -f2 "$work/rounds")
for listener in http resp grpc; do
  thirds "$listener: p99 in ns" 2 2000000 < <(awk -v listener="$listener" '$1 == listener {print $3}' "$work/loads")
done
still_answers "after the soak"
finish
