# `weir import envoy`: Envoy's files as rules, and that those rules answer as the files do, asked from outside: random
# files of what rules can say, imported, served, and every answer compared with the model of the reference service that
# envoy_reference.sh holds to the service itself. The seed is printed; WEIR_SEED repeats it.
source "$(dirname "$0")/lib.bash"
source_dir=$(realpath "$2")
seed=${WEIR_SEED:-$RANDOM$RANDOM}
domains=${WEIR_DOMAINS:-200}
cd "$work" || exit 1

cat >edge.yaml <<'YAML'
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 3}
    descriptors:
      - {key: path, value: "/api/*", rate_limit: {unit: hour, requests_per_unit: 2, name: api}}
  - {key: user, value: bob, quota_mode: true, rate_limit: {unit: second}}
  - {key: "ser*", rate_limit: {unit: day, requests_per_unit: 9}}
YAML
printf 'domain: other\ndescriptors: [{key: ip, rate_limit: {unlimited: true}}]\n' >other.yml

# --- what is written, and what is said --------------------------------------------------------------------------------
answer=$("$program" import envoy edge.yaml 2>said)
is "imported: exit code" 0 "$?"
has "the head tells where it is from" "# By \`weir import envoy\` edge.yaml." "$answer"
has "a rule for each limit" \
  "{name: edge/user, match: {entry: {domain: edge}, entries: [domain, user], not: {entry: {user: bob}}}" "$answer"
has "counted by what the files count by" \
  'per: ["entry:user", "entry:path"], algorithm: fixed_window, limit: 2/hour' "$answer"
has "what is not said stands at the head, too" "# Not said here: edge.yaml:8:5: rules name entries in full" "$answer"
is "what is not said is told by its line" \
  "edge.yaml:7:5 edge.yaml:8:5" "$(grep -o '^edge.yaml:[0-9]*:[0-9]*' said | paste -sd' ')"
has "quota_mode" "rules know no quota_mode" "$(cat said)"
answer=$("$program" import envoy edge.yaml other.yml -o weir.yaml 2>/dev/null)
is "into a file" "0 weir.yaml: 4 rules" "$? ${answer%%;*}"
is "which is fine" "weir.yaml: 4 rules, fine" "$("$program" validate weir.yaml)"
answer=$("$program" import envoy edge.yaml -o weir.yaml 2>&1)
is "a file that is there is left alone" "1 4" "$? $(grep -c name: weir.yaml)"
has "and it is said" "weir.yaml: File exists; name a new file" "$answer"
is "from the standard input" "$("$program" import envoy other.yml | tail -1 | sed 's/other.yml/stdin/')" \
  "$("$program" import envoy - <other.yml | tail -1)"
mkdir folder && cp edge.yaml other.yml folder/ && echo no >folder/notes.txt
is "a folder is its files" 4 "$("$program" import envoy folder 2>/dev/null | grep -c name:)"

answer=$("$program" import envoy --explain edge.yaml)
has "explained: the deliberate differences" "A denied request is charged nothing" "$answer"
has "explained: algorithms" "Algorithms may be chosen" "$answer"
has "explained: what is in this file" "  edge.yaml:7:5: rules know no quota_mode" "$answer"
has "explained: nothing" "Rules say all that these files say." "$("$program" import envoy --explain other.yml)"
is "explained without files" "$("$program" import --explain)" "$("$program" import envoy --explain)"

# refused NAME CODE PART ARGUMENTS
refused() {
  local name=$1 code=$2 part=$3
  shift 3
  local said status
  said=$("$program" import "$@" 2>&1 >/dev/null)
  status=$?
  is "$name: exit code" "$code" "$status"
  has "$name" "$part" "$said"
}
echo 'domain: edge' >bare.yaml
printf 'domain: edge\ndescriptors: [{key: k, rate_limit: {unit: fortnight}}, {kay: k}]\n' >bad.yaml
mkdir empty
refused "nothing to import from" 2 "import from what?"
refused "no file" 2 "needs the files" envoy
refused "a file that is not there" 1 "nowhere.yaml" envoy nowhere.yaml
refused "a folder without files" 1 "contains no .yaml, .yml or .json file" envoy empty
refused "a domain twice" 1 "edge" envoy edge.yaml bare.yaml
refused "a bad file: the first error" 1 "bad.yaml:2:" envoy bad.yaml
refused "a bad file: every error" 1 "kay" envoy bad.yaml
refused "no limits" 1 "no limit that a rule can say" envoy bare.yaml

# --- served -----------------------------------------------------------------------------------------------------------
echo "seed $seed, $domains domains (WEIR_SEED=$seed WEIR_DOMAINS=$domains repeats it)"
compare=(python3 "$source_dir/tests/server/envoy_reference.py")
mkdir files
"${compare[@]}" write files "$seed" "$domains" rules || exit 1
"$program" import envoy files -o many.yaml >/dev/null 2>many.said
is "random files: imported, and nothing is left out" "0 " "$? $(cat many.said)"
start_server --config many.yaml
answer=$(timeout 900 "${compare[@]}" ask "$seed" "$domains" rules "$http_port" 2>&1)
status=$?
sed 's/^/      /' <<<"$answer"
is "the rules answer as the files" 0 "$status"

# A rule without its exclusions is another rule.
"$program" import envoy files 2>/dev/null | sed -E 's/, not: \{entry: \{[^}]*\}\}//' >wrong.yaml
is "without what others take first, it can be read" 0 "$("$program" validate wrong.yaml >/dev/null 2>&1; echo $?)"
stop_one() { kill -TERM "$1" && wait "$1" 2>/dev/null; }
stop_one "$pid"
start_server --config wrong.yaml
timeout 900 "${compare[@]}" ask "$seed" "$domains" rules "$http_port" >/dev/null 2>&1
is "and the comparison notices" 1 "$?"
finish
