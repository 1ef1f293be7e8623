# Helpers of tests/model.sh and tests/model_long.sh: exhaustive searches of the model, two at a time, one line of output
# each.
#
# A search states what it must find: `nothing`, or the name of the property that a bug breaks. table.pml names the
# properties; `nobody_waits` is the search for cycles. A search that was cut short fails. To see how a property breaks:
# in an empty folder, with the flags of its line,
#
#   spin FLAGS -a .../table.pml && gcc -DSAFETY -DVECTORSZ=1024 -o pan pan.c && ./pan -m400000
#   spin FLAGS -t -p -g .../table.pml
set -u
source=${2:-$(dirname "${BASH_SOURCE[0]}")/../..}
model=$(cd "$source/tests/model" && pwd) || exit 1
work=$(mktemp -d)
number=0

cleanup() {
  local pid
  for pid in $(jobs -p) $(cat "$work"/*/pid 2>/dev/null); do kill "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap cleanup EXIT

for tool in spin gcc timeout; do
  command -v "$tool" >/dev/null || { echo "this test needs $tool; ./dev setup brings it"; exit 1; }
done
# To compile a search takes longer than most searches run; a model that did not change gives the same C.
gcc=(gcc)
! command -v ccache >/dev/null || gcc=(ccache gcc)

# The seeded bugs, -DBUG=n. Numbers 4 and 21 do no harm: a mark is changed only by a CAS that compares who and which
# sequence, and a participant raises its sequence only when no unit names the old one; so whoever works at an operation
# that is over changes nothing. At worst he aborts a try that was none of his business.
bug_names=(
  [1]="release leaves claimed marks as they are"
  [2]="help mode installs by a plain CAS"
  [3]="an insertion leaves the page's version as it was"
  [4]="a helper does not compare the sequence"
  [5]="a denial from two reads of 8 bytes"
  [6]="the scan passes over marked units"
  [7]="the conditional install does not ask the status"
  [8]="an absent key takes the lapsed slot of another key of its verdict"
  [9]="recovery releases nothing"
  [10]="a helper releases from what it read before the operation was decided"
  [11]="a charge compares the state, not the tag"
  [12]="a lapsed slot is taken by its tag alone, though it was revived"
  [13]="recovery leaves the install of the dead unfinished"
  [14]="release compares who, not which sequence"
  [15]="the next operation begins before the last one is released"
  [16]="the owner stores done instead of a CAS from solo"
  [17]="who meets a solo operation waits for its owner"
  [18]="operations stay solo for ever"
  [19]="units that a verdict only read are left out of its operation"
  [20]="the version is read after the scan only"
  [21]="entries are rewritten before the sequence is raised"
)

# search EXPECTED SIZE NAME FLAGS...: SIZE is small (compiled fast), medium (runs three times as fast) or large (as fast
# as can be, states compressed).
search() {
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
  number=$((number + 1))
  run_search "$number" "$@" &
}

run_search() {
  local number=$1 expected=$2 size=$3 name=$4
  shift 4
  local folder=$work/$number compile=(-DNOFAIR -DVECTORSZ=1024) run=(-m400000) seconds_max
  case $size in
    small) compile+=(-O0 -DMEMLIM=1500) run+=(-w20) seconds_max=110 ;;
    medium) compile+=(-O1 -DMEMLIM=1500) run+=(-w20) seconds_max=110 ;;
    large) compile+=(-O2 -DMEMLIM=6000 -DCOLLAPSE) run+=(-w23) seconds_max=1500 ;;
  esac
  if [ "$expected" == nobody_waits ] || [[ $name == *"no cycle"* ]]; then
    compile+=(-DNP)
    run+=(-l)
  else
    compile+=(-DSAFETY)
  fi
  mkdir "$folder" && cd "$folder" || exit 1
  local found=broken
  if spin "$@" -a "$model/table.pml" >log 2>&1 &&
    "${gcc[@]}" "${compile[@]}" -c pan.c >>log 2>&1 && gcc -o pan pan.o >>log 2>&1; then
    timeout "$seconds_max" ./pan "${run[@]}" >log 2>&1 &
    echo $! >pid
    wait $!
    rm pid
    found=$(verdict_of log)
  fi
  report "$@"
  rm -f pan*
}

# verdict_of LOG: nothing, a property, or why the search is worth nothing.
verdict_of() {
  local fallen
  fallen=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' "$1" | head -1)
  case $fallen in
    "assertion violated "*) echo "${fallen#assertion violated }" ;;
    "non-progress cycle") echo nobody_waits ;;
    ?*) echo "$fallen" ;;
    *) if grep -q 'errors: 0' "$1" && ! grep -qi 'not completed\|too small\|out of memory\|MEMLIM' "$1"; then
         echo nothing
       else
         echo "cut short"
       fi ;;
  esac
}

# report FLAGS...: one line, from the variables of run_search; a failure also shows what was said last.
report() {
  local mark=ok states seconds
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' log)
  seconds=$(sed -n 's/^pan: elapsed time \([0-9.e+-]*\) seconds/\1/p' log)
  [ "$found" == "$expected" ] || mark=FAIL
  printf '%-5s %9s states %7s s  %-15s %s\n' "$mark" "${states:-?}" "${seconds:-?}" "$found" "$name"
  [ "$mark" == FAIL ] || return
  printf '      expected %s; flags: %s\n%s\n' "$expected" "$*" "$(tail -n 5 log | sed 's/^/      /')"
  touch "$work/failed.$number"
}

# right SIZE NAME FLAGS...: the model as it is; nothing falls.
right() { search nothing "$1" "$2" "${@:3}"; }

# bug N EXPECTED SIZE FLAGS...: the model with that mistake.
bug() { search "$2" "$3" "bug $1: ${bug_names[$1]}" -DBUG="$1" "${@:4}"; }

finish() {
  wait
  local failed=("$work"/failed.*)
  if [ -e "${failed[0]}" ]; then
    echo "${#failed[@]} of $number searches failed"
    exit 1
  fi
  echo "all $number searches found what they should"
}
