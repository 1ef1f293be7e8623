# What envoyproxy/ratelimit publishes: its examples, the files of its README and of its tests, and many damaged ones.
# Weir accepts and refuses the same files as the service's own checker. The seed of the damage is printed; WEIR_SEED
# repeats it, WEIR_FILES sets the number.
source "$(dirname "$0")/gateway.bash"
provide reference_source
provide reference_check
seed=${WEIR_SEED:-$RANDOM$RANDOM}
files=${WEIR_FILES:-120}

# --- as they are published --------------------------------------------------------------------------------------------
# The README holds its examples between lines of three backticks; one of them is a grammar with <words> for values.
mkdir "$work/published"
awk -v folder="$work/published" '/^```ya?ml/ {on = 1; text = ""; next} /^```/ {
    if (on && text ~ /(^|\n)domain:/ && text !~ /</) print text > (folder "/readme-" ++n ".yaml"); on = 0 }
  on {text = text $0 "\n"}' "$reference_source/README.md"
cp "$reference_source"/examples/ratelimit/config/*.yaml "$work/published"
readme=("$work"/published/readme-*.yaml)
at_least "examples in the README" "${#readme[@]}" 5
for file in "$work"/published/*.yaml; do
  is "${file##*/}: is taken" 0 "$("$program" import envoy "$file" --explain >/dev/null 2>"$work/said"; echo $?)"
  rules=$("$program" import envoy "$file" 2>"$work/said")
  is "${file##*/}: is imported" "0 valid" \
    "$("$program" validate - <<<"$rules" >"$work/valid" 2>&1; echo "$?" "$(sed 's/.*, //' "$work/valid")")"
done
start_server --envoy "$reference_source/examples/ratelimit/config"
ask() { curl -s -m 60 -o /dev/null -w '%{http_code} ' "$http/json" -d "$1"; }
one='{"domain":"rl","descriptors":[{"entries":[{"key":"source_cluster","value":"proxy"},'
one+='{"key":"destination_cluster","value":"mock"}]}]}'
is "the example's limit of one a minute applies" "200 429 " "$(ask "$one"; ask "$one")"

# takes FOLDER: what the service's checker says of it, and what Weir does.
takes() {
  "$reference_check" -config_dir "$1" >/dev/null 2>&1 && echo -n taken || echo -n refused
  "$program" import envoy "$1" --explain >/dev/null 2>&1 && echo -n ' taken' || echo -n ' refused'
}

# --- the files of its own tests ---------------------------------------------------------------------------------------
mkdir "$work/alone"
taken=0 refused=0
served=$reference_source/test/integration/runtime/current/ratelimit/config
for file in "$reference_source"/test/config/*.yaml "$served"/*.yaml; do
  rm -f "$work"/alone/*
  cp "$file" "$work/alone/"
  answer=$(takes "$work/alone")
  [ "$answer" == "taken taken" ] && taken=$((taken + 1))
  [ "$answer" == "refused refused" ] && refused=$((refused + 1))
  is "${file##*/}: ${answer% *} by both" "${answer% *} ${answer% *}" "$answer"
done
at_least "files of its tests that are taken" "$taken" 5
at_least "files of its tests that are refused" "$refused" 5

# --- damaged ----------------------------------------------------------------------------------------------------------
rm -f "$work"/alone/*
printf '%s\n' 'domain: probe' 'descriptors: [{key: k, metadata: {a: b}}]' >"$work/alone/probe.yaml"
generation=january
"$reference_check" -config_dir "$work/alone" >/dev/null 2>&1 && generation=july
echo "seed $seed, $files folders of files (WEIR_SEED=$seed WEIR_FILES=$files repeats it), generation of $generation"
accept=("$python" "$source_dir/tests/server/envoy_accept.py")
answer=$("${accept[@]}" "$reference_check" "$program" "$work" "$seed" "$files" "$generation" 2>&1)
status=$?
sed 's/^/      /' <<<"$answer"
is "each is taken by both or refused by both" 0 "$status"
# A Weir that takes everything would be noticed.
answer=$("${accept[@]}" "$reference_check" /bin/true "$work" "$seed" 40 "$generation" 2>&1)
is "a program that accepts everything is noticed" 1 "$?"
finish
