# The steps of envoy_reference.sh and envoy_reference_long.sh: writes files, starts the reference service and Weir on
# them, and compares their answers. Then it falsifies one answer of each kind, and the comparison must notice.
source "$(dirname "${BASH_SOURCE[0]}")/reference.bash"
seed=${WEIR_SEED:-$RANDOM$RANDOM}
domains=${WEIR_DOMAINS:-120}
rounds=${WEIR_ROUNDS:-1}
echo "seed $seed, $domains domains, $rounds rounds (WEIR_SEED=$seed WEIR_DOMAINS=$domains repeats them)"
kinds=(status overall code limit unit name remaining reset missing)
spoiled=10  # domains for each of them
compare=("$python" "$source_dir/tests/server/envoy_reference.py")

# find_generation: sets generation; the newer one takes `*` in the middle of a pattern.
find_generation() {
  mkdir -p "$work/probe/config"
  printf '%s\n' 'domain: probe' 'descriptors:' '  - key: k' '    value: a*z' \
    '    rate_limit: {unit: year, requests_per_unit: 5}' >"$work/probe/config/probe.yaml"
  start_reference "$work/probe"
  local answer
  answer=$(curl -s -m 60 "http://127.0.0.1:$reference_port/json" \
    -d '{"domain":"probe","descriptors":[{"entries":[{"key":"k","value":"abz"}]}]}')
  stop "$reference_pid"
  case $answer in
    *currentLimit*) generation=july ;;
    *OK*) generation=january ;;
    *) echo "FAIL  the reference service does not answer: $answer" && exit 1 ;;
  esac
}

# start_both: the same new files for both, from the seed; nothing is spent.
start_both() {
  rm -rf "$work/files"
  mkdir -p "$work/files/config"
  "${compare[@]}" write "$work/files/config" "$seed" $((domains + spoiled * ${#kinds[@]})) "$generation" || exit 1
  with_reference=()
  if [ -n "$has_reference" ]; then
    start_reference "$work/files"
    with_reference=("$reference_port" "$redis_port")
  fi
  start_server --envoy "$work/files/config"
}

stop_both() {
  stop "$pid"
  [ -z "$has_reference" ] || stop "$reference_pid"
}

# ask DOMAINS [ARGUMENTS]
ask() { timeout 3000 "${compare[@]}" ask "$seed" "$1" "$generation" "$http_port" "${with_reference[@]}" "${@:2}" 2>&1; }

generation=july has_reference=''
if (provide reference && need_redis) >"$work/why_not"; then
  provide reference
  has_reference=yes
  source "$(dirname "${BASH_SOURCE[0]}")/own_redis.bash"
  start_redis
  find_generation
  echo "the reference service is of the generation of $generation"
else
  skip "the reference" "$(sed 's/^skip *//' "$work/why_not"). Weir is compared with the model of it alone"
fi

for round in $(seq "$rounds"); do
  [ "$round" == 1 ] || { stop_both && seed=$((seed + 1)); }
  start_both
  answer=$(ask "$domains")
  status=$?
  sed 's/^/      /' <<<"$answer"
  is "every answer is as it has to be (seed $seed)" 0 "$status"
done

# With what is denied counted, too, the reference keeps its own counters from the first request to the last.
stop "$pid"
start_server --envoy "$work/files/config" --envoy-count-denied
answer=$(ask $((domains < 100 ? domains : 100)) --counting)
status=$?
sed 's/^/      /' <<<"$answer"
is "so is every answer where denied requests are counted" 0 "$status"
stop "$pid"
start_server --envoy "$work/files/config"

# What no file can be about: neither knows what to make of it.
for body in '' '{' '[]' '{"domain":""}' '{"domain":"domain-1"}' '{"domain":"domain-1","descriptors":[]}' \
  '{"domain":"domain-1","descriptors":[{"entries":[{"key":"a"}],"hitsAddend":-1}]}' \
  '{"domain":"domain-1","descriptors":[{"entries":[{"key":"a"}]}],"colour":"red"}'; do
  is "refused by Weir: $body" 400 "$(code_of "$http/json" -d "$body")"
  [ ${#with_reference[@]} -eq 0 ] ||
    is "refused by the reference: $body" 400 "$(code_of "http://127.0.0.1:$reference_port/json" -d "$body")"
done

# --- the comparison itself --------------------------------------------------------------------------------------------
# Each kind of mistake on domains of its own, of which nothing is spent.
first=$domains
for kind in "${kinds[@]}"; do
  answer=$(ask "$spoiled" --spoil "$kind" "$first")
  is "a wrong answer is noticed: $kind" "1 failed: weir answers otherwise" "$? $(grep -m1 '^failed' <<<"$answer")"
  first=$((first + spoiled))
done
finish
