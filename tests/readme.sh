#!/usr/bin/env bash
# The README is true: its console examples print what it shows, against a fresh server, and its C++ compiles and runs.
# The same for the console examples of docs/deploy.md. Called as `readme.sh PROGRAM SOURCE_DIR`.
source=$2
. "$source/tests/server/lib.bash"
start_server

# Each `$ command` of a console block is followed by what it prints on a terminal. When a window ends is the clock's.
examples=0
without_time() { sed -E 's/"reset_after":[0-9]{3,}\.[0-9]+/"reset_after":T/'; }
try_example() {
  [ -n "$1" ] || return
  local run=$1
  run=${run//localhost:8080/127.0.0.1:$http_port}
  run=${run//redis-cli -p 6380/redis-cli --no-raw -p $resp_port}
  is "$1" "$(without_time <<<"$2")" "$(timeout 600 bash -c "$run" | without_time)"
  examples=$((examples + 1))
}
# try_examples FILE
try_examples() {
  local inside='' command='' expected='' line
  examples=0
  while IFS= read -r line; do
    case $line in
      '```console') inside=yes ;;
      '```')
        try_example "$command" "$expected"
        inside='' command='' expected=''
        ;;
      '$ '*)
        [ -n "$inside" ] || continue
        try_example "$command" "$expected"
        command=${line#'$ '} expected=''
        ;;
      *) [ -z "$inside" ] || expected+=${expected:+$'\n'}$line ;;
    esac
  done <"$source/$1"
}
try_examples README.md
is "the README has two console examples" 2 "$examples"
try_examples docs/deploy.md
is "and docs/deploy.md two" 2 "$examples"

# The C++ example, compiled as the README says, where the program was built.
sed -n '/^```cpp$/,/^```$/p' "$source/README.md" | sed '1d;$d' >"$work/example.cc"
compile=$(sed -n 's/^    \(g++ .* -o example\)$/\1/p' "$source/README.md")
compile=${compile/example.cc/"$work/example.cc"}
compile=${compile/-o example/-o "$work/example"}
cd "$(dirname "$program")/.." || exit 1
if [ -n "$compile" ] && bash -c "$compile -Wall -Wextra -Werror" 2>"$work/errors"; then
  has "the C++ example is told to wait" "wait " "$(timeout 600 "$work/example")"
else
  is "the C++ example compiles" "" "$(cat "$work/errors")"
fi
finish
