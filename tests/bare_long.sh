#!/usr/bin/env bash
# Every verb of ./dev, as the first command in a fresh checkout on a bare Debian. Each verb gets its own root, so none
# finds what another one built or installed. The commands of docs/embed.md run the same way. Called with the program and
# the checkout. `./dev test` takes longest, half an hour. It runs there without --long, so it does not start this test
# again.
#
# The roots share the cache of the compiler: CCACHE_DIR of this machine, or one of this test.
source=$2
. "$source/tests/server/lib.bash"
. "$source/tests/bare_root.bash"
export CCACHE_DIR=${CCACHE_DIR:-$work/ccache}
export WEIR_INSIDE="CCACHE_DIR=/ccache CCACHE_BASEDIR=/weir CCACHE_NOHASHDIR=1"
mkdir -p "$CCACHE_DIR"

# fresh: a new root at $root with this checkout in /weir.
fresh() {
  [ -z "${root:-}" ] || rm -rf "$root"
  bare_root bare-bookworm
  mkdir "$root/weir" "$root/ccache"
  (cd "$source" && tar -c --exclude=./build --exclude=./.git --exclude='*.state' .) | tar -x -C "$root/weir"
}

# works NAME COMMAND: in a fresh root, in the checkout; what it prints is in $work/said, its end shown if it fails.
works() {
  fresh
  timeout 7200 "$inside" "$root" bash -c "cd /weir && $2" >"$work/said" 2>&1 </dev/null
  is "$1" 0 $?
  tail -n 3 "$work/said" | sed 's/^/      /'
  if [ "$failures" -gt "${seen:=0}" ]; then
    grep -E 'FAIL|Failed|\*\*\*|error:' "$work/said" | head -n 40
    tail -n 30 "$work/said"
    seen=$failures
  fi
}

tried=' '
verb() {
  tried+="$1 "
  works "./dev ${2:-$1}" "./dev ${2:-$1}${3:+ && $3}"
}
verb help
verb clean
verb build build 'build/weir version'
verb install install '/usr/local/bin/weir version && test -s /usr/local/include/weir/limiter.h'
verb package package 'test "$(ls build/*.deb | wc -l)" == 3'
verb lint
verb fuzz 'fuzz 1'
for name in "$source"/bench/*.cc; do verb bench "bench $(basename "$name" .cc) --quick"; done
verb setup
works "the commands of docs/embed.md" "set -e
  $(sed -n '/^## Linking it/,/^|/s/^    //p' "$source/docs/embed.md")
  ls /usr/local/lib/*/libweir{,_fleet,_policy}.a /usr/local/lib/*/libweir.so"

# The server runs until a signal stops it.
fresh
tried+='serve '
"$inside" "$root" sh -c 'cd /weir && exec ./dev serve --http :0 --grpc :0 --resp :0 --admin :0' \
  >"$work/out0" 2>"$work/err0" </dev/null &
pid=$!
server_pids+=("$pid")
is_announced_or_gone() { is_announced "$work/out0" || is_gone "$pid"; }
until_true 3300 is_announced_or_gone
is "./dev serve becomes ready" yes "$(is_announced "$work/out0" && echo yes || tail -n 20 "$work/err0")"
if is_announced "$work/out0"; then
  http=$(awk '/^http /{print $2}' "$work/out0")
  has "and answers" "200 OK" "$(post '{"key":"user:42","limit":"100/minute"}')"
  kill "$pid" && wait "$pid"
  is "and stops in peace" 0 $?
fi

verb test
for name in $("$source/dev" help | sed -nE 's/^(  |\.\/dev )([a-z]+) .*/\2/p' | sort -u); do
  is "$name was tried" yes "$([[ $tried == *" $name "* ]] && echo yes)"
done
finish
