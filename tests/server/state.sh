# `weir state`: errors for wrong files and mistyped words. src/limiter/state_test.cc, src/table/resize_test.cc and
# survive.sh test it on valid files.
source "$(dirname "$0")/lib.bash"

exits "state --help succeeds" 0 weir state --help
has "and leads with examples" "weir state inspect state.weir" "$(head -3 <<<"$said")"
prints "resize --help" "--memory" weir state resize --help

printf 'not a table' >"$work/foreign"
: >"$work/empty"
for command in inspect export resize; do
  refuses 1 "no such state file" state "$command" "$work/nothing"
  refuses 1 "is a directory; name a file in it" state "$command" "$work"
  refuses 1 "is not a state file of Weir" state "$command" "$work/foreign"
  refuses 1 "is empty; remove it" state "$command" "$work/empty"
  refuses 2 "See weir state $command --help" state "$command"
done
is "a foreign file is left alone" "not a table" "$(cat "$work/foreign")"
is "and nothing is left beside it" "empty foreign" "$(cd "$work" && echo e* f*)"
refuses 2 "See weir state --help" state shrink "$work/foreign"
refuses 2 "is not a whole number from 1" state resize "$work/foreign" --keys 0
refuses 2 "is not a whole number from 1" state resize "$work/foreign" --memory 1G
finish
