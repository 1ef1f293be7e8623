#!/usr/bin/env bash
# The two commands of README.md on a Debian with nothing on it but this checkout: `./dev serve` becomes ready and
# answers, `./dev test` passes, which takes half an hour or more. It runs without --long there, and so not this test
# once more. Called with the program and the source.
#
# With CCACHE_DIR set, the compiler's cache of this machine is used inside.
source=$2
. "$source/tests/server/lib.bash"
. "$source/tests/bare_root.bash"

bare_root bare-bookworm
mkdir "$root/weir"
(cd "$source" && tar -c --exclude=./build --exclude=./.git --exclude='*.state' .) | tar -x -C "$root/weir"
if [ -n "${CCACHE_DIR:-}" ]; then
  mkdir "$root/ccache"
  export CCACHE_DIR WEIR_INSIDE="CCACHE_DIR=/ccache CCACHE_BASEDIR=/weir CCACHE_NOHASHDIR=1"
fi

"$inside" "$root" sh -c 'cd /weir && exec ./dev serve --http :0 --grpc :0 --resp :0 --admin :0' \
  >"$work/out0" 2>"$work/err0" </dev/null &
pid=$!
server_pids+=("$pid")
is_announced_or_gone() { is_announced "$work/out0" || is_gone "$pid"; }
until_true 3300 is_announced_or_gone
is "./dev serve becomes ready" yes "$(is_announced "$work/out0" && echo yes || tail -n 20 "$work/err0")"
[ "$failures" -eq 0 ] || finish
http=$(awk '/^http /{print $2}' "$work/out0")
has "and answers" "200 OK" "$(post '{"key":"user:42","limit":"100/minute"}')"
kill "$pid" && wait "$pid"
is "and stops in peace" 0 $?

timeout 7200 "$inside" "$root" sh -c 'cd /weir && ./dev test' >"$work/said-test" 2>&1 </dev/null
is "./dev test passes" 0 $?
if [ "$failures" -gt 0 ]; then grep -E 'FAIL|Failed|\*\*\*' "$work/said-test" | head -n 40; fi
tail -n 3 "$work/said-test"
finish
