# `weir state`: what it says to those who name the wrong file or mistype. What it does with a right one is tested in
# src/limiter/state_test.cc, src/table/resize_test.cc and survive.sh.
source "$(dirname "$0")/lib.bash"

run() { timeout 600 "$program" "$@" 2>&1; }

help=$(run state --help)
is "state --help succeeds" 0 $?
has "and leads with examples" "weir state inspect state.weir" "$(head -3 <<<"$help")"
has "resize --help" "--memory" "$(run state resize --help)"

# refused CODE PART ARGUMENTS...: this exit code, this hint, one line.
refused() {
  local code=$1 part=$2 out
  shift 2
  out=$(run state "$@")
  is "state $*: exit code" "$code" "$?"
  has "state $*: hint" "$part" "$out"
  is "state $*: one line" 1 "$(wc -l <<<"$out")"
}
printf 'not a table' >"$work/foreign"
: >"$work/empty"
for command in inspect export resize; do
  refused 1 "no such state file" "$command" "$work/nothing"
  refused 1 "is a directory; name a file in it" "$command" "$work"
  refused 1 "is not a state file of Weir" "$command" "$work/foreign"
  refused 1 "is empty; remove it" "$command" "$work/empty"
  refused 2 "See weir state --help" "$command"
done
is "a foreign file is left alone" "not a table" "$(cat "$work/foreign")"
is "and nothing is left beside it" "empty foreign" "$(cd "$work" && echo e* f*)"
refused 2 "See weir state --help" shrink "$work/foreign"
refused 2 "is not a whole number from 1" resize "$work/foreign" --keys 0
refused 2 "is not a whole number from 1" resize "$work/foreign" --memory 1G
finish
