#!/usr/bin/env bash
# Runs one fuzz target: run.sh BINARY FUZZ_FOLDER SECONDS [keep]
#
# It starts from the corpus of the checkout, and writes new inputs beside the binary. With `keep`, it minimises them and
# adds them to the corpus. An input that breaks the target stays in the build folder; libFuzzer prints its path last.
set -euo pipefail
binary=$1 folder=$2 seconds=$3 keep=${4:-}
name=${binary##*/fuzz_}
corpus=$folder/corpus/$name
found=${binary%/*}/found/$name
crashes=${binary%/*}/crashes
mkdir -p "$found" "$crashes"

# ASan keeps freed memory in a quarantine. 32 MB are enough, and fit into the limit.
export ASAN_OPTIONS=quarantine_size_mb=32
limits=(-malloc_limit_mb=64 -rss_limit_mb=512 -timeout=5)
[[ -d $corpus ]] && seeds=("$corpus") || seeds=()
[[ -f $folder/$name.dict ]] && limits+=("-dict=$folder/$name.dict")

"$binary" "${limits[@]}" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$crashes/$name-" \
  "$found" "${seeds[@]}"
if [[ -n $keep ]]; then
  mkdir -p "$corpus"
  "$binary" -merge=1 "${limits[@]}" "$corpus" "$found"
fi
