#!/usr/bin/env bash
# The installed library is complete. In a folder that knows nothing of this checkout, this test builds and runs the C++
# and C examples and those of docs/embed.md, with find_package and with pkg-config. Four processes share one state file.
# Called as `install.sh PROGRAM SOURCE_DIR`, after a build.
source=$2
. "$source/tests/server/lib.bash"
. "$source/tests/server/own_redis.bash"
command -v pkg-config >/dev/null || { echo "this test needs pkg-config; ./dev setup brings it"; exit 1; }

build=$(dirname "$program")
[ -f "$build/CMakeCache.txt" ] || build=$build/release
cxx=(g++ -std=c++20 -O1 -Wall -Wextra -Werror)
cc=(gcc -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror)
cache=()
launcher=()
if command -v ccache >/dev/null; then  # where the headers are the same as last time, so is what they are compiled to
  cache=(ccache)
  launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=$work
fi

# run NAME COMMAND...: it ends well; what it says is kept in $said, and shown if it does not.
run() {
  local name=$1
  shift
  said=$("$@" 2>&1 </dev/null)
  is "$name" 0 "$?"
  [ "$failures" -eq 0 ] || { echo "$said" | tail -n 30; finish; }
}

# compile COMPILER FILE PROGRAM FLAGS...: COMPILER is cxx or cc.
compile() {
  local -n compiler=$1
  local from=$2 to=$3
  shift 3
  "${cache[@]}" "${compiler[@]}" -c "$from" "$@" -o "$to.o" && "${compiler[@]}" "$to.o" "$@" -o "$to"
}

# Every file of the build that is installed is built by the target that `./dev install` and `./dev package` build, and
# those of the library by the one that docs/embed.md names. The test run builds everything, which would hide a gap.
# not_built TARGET COMPONENT...: the files that those components install and the target does not build. What CMake
# writes when it configures needs no target.
not_built() {
  local target=$1 file commands
  shift
  commands=$(ninja -C "$build" -t commands "$target")
  awk -v among=" $* " -v build="\"$(realpath "$build/..")/" '
      /CMAKE_INSTALL_COMPONENT STREQUAL/ {split($0, part, "\""); wanted = index(among, " " part[2] " ")}
      wanted && (at = index($0, build)) {split(substr($0, at), part, "\""); print part[2]}' \
    "$build/packaging/cmake_install.cmake" | grep -v '\.cmake$\|\.pc$\|\.md$' | sort -u |
    while read -r file; do
      file=${file#"$(realpath "$build")/"}
      [[ $commands == *"${file#packaging/}"* ]] || echo "$file"
    done
}
is "./dev install builds all that it installs" "" "$(not_built weir_shipped library program)"
embed=$(sed -n 's/^ .*--build build\/release --target //p' "$source/docs/embed.md")
is "and docs/embed.md all of the library" "" "$(not_built "$embed" library)"
is "which one that is not among them would show" "lib/libweir_fleet.a" "$(not_built weir_rules library | grep fleet)"

# All of it, as `./dev install` does.
run "everything installs" cmake --install "$build" --prefix "$work/all"
for file in bin/weir share/man/man1/weir.1 share/man/man5/weir.yaml.5 share/bash-completion/completions/weir; do
  is "with $file" yes "$([ -s "$work/all/$file" ] && echo yes)"
done
is "which runs" "$("$program" version)" "$("$work/all/bin/weir" version)"

# Installed in one place, used in another: nothing remembers where it was.
run "installs" cmake --install "$build" --prefix "$work/first" --component library
mv "$work/first" "$work/prefix"
lib=$(dirname "$(find "$work/prefix" -name libweir.a)")
export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"
cp -r "$source/examples" "$work/examples"
cd "$work" || exit 1

# With find_package.
run "the examples are configured" cmake -S examples -B built -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_BUILD_TYPE=Release "${launcher[@]}"
run "the examples are built" cmake --build built -j 2
for example in check check_static; do
  run "$example runs" timeout 600 "built/$example"
  has "$example: the burst is spent" "wait " "$said"
done
for example in check_c check_c_static; do
  run "$example runs" timeout 600 "built/$example"
  is "$example: answers" "check: allowed 1, remaining 99
both: allowed 1, remaining 98 and 4
wait: allowed 1
commit: remaining 8766" "$said"
done
is "the static one needs no libweir.so" "" "$(ldd built/check_static | grep weir)"
has "the other one does" "$lib" "$(ldd built/check | grep weir)"

run "rules runs" timeout 600 built/rules examples/weir.yaml
is "rules: who denied" "request 10: steps: 10/second" "$said"

# A Redis for those that share limits by one.
start_redis
run "fleet runs" timeout 600 built/fleet "redis://127.0.0.1:$redis_port"
is "fleet: exactly the limit, and nothing for who is denied" "check: allowed 1, remaining 999, decided by strict
async: admitted 100 of 300
left: 899" "$said"

# A project in C alone needs no C++ compiler.
mkdir plain && cat >plain/CMakeLists.txt <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(plain LANGUAGES C)
find_package(weir 0.1 REQUIRED)
add_executable(plain ../examples/check.c)
target_link_libraries(plain PRIVATE weir::weir)
TEXT
run "a project in C is configured" cmake -S plain -B plain/built -DCMAKE_PREFIX_PATH="$work/prefix"
run "a project in C is built" cmake --build plain/built
run "a project in C runs" timeout 600 plain/built/plain

# With pkg-config.
read -ra flags <<<"$(pkg-config --cflags --libs weir)"
run "check.cc by pkg-config" compile cxx examples/check.cc check "${flags[@]}"
run "check runs" timeout 600 ./check
run "check.c by pkg-config" compile cc examples/check.c check_c "${flags[@]}"
run "check_c runs" timeout 600 ./check_c
run "shared.c by pkg-config" compile cc examples/shared.c shared "${flags[@]}"

read -ra policy_flags <<<"$(pkg-config --cflags --libs weir-policy)"
run "rules.cc by pkg-config" compile cxx examples/rules.cc rules "${policy_flags[@]}"
run "rules runs" timeout 600 ./rules examples/weir.yaml

read -ra fleet_flags <<<"$(pkg-config --cflags --libs weir-fleet)"
run "fleet.cc by pkg-config" compile cxx examples/fleet.cc fleet "${fleet_flags[@]}"
run "fleet runs" timeout 600 ./fleet "redis://127.0.0.1:$redis_port"

# Each block of C++ or C in docs/embed.md is a program. Those of a fleet find their Redis here.
for kind in cpp c; do
  awk -v begin="\`\`\`$kind" -v kind="$kind" '
    $0 == begin {inside = 1; n++; next}
    $0 == "```" {inside = 0}
    inside {print > ("block" n "." kind)}' "$source/docs/embed.md"
done
blocks=0
for block in block*.cpp block*.c; do
  [ -f "$block" ] || continue
  language=cxx && [ "${block##*.}" == c ] && language=cc
  linked=("${flags[@]}") && grep -q 'weir/fleet.h' "$block" && linked=("${fleet_flags[@]}")
  sed -i "s#redis://redis.internal#redis://127.0.0.1:$redis_port#" "$block"
  run "docs/embed.md: $block" compile "$language" "$block" "$block.out" "${linked[@]}"
  run "docs/embed.md: $block runs" timeout 600 "./$block.out"
  blocks=$((blocks + 1))
done
is "docs/embed.md has examples" yes "$([ "$blocks" -ge 5 ] && echo yes || echo "$blocks")"

# The shared library shows its interface and nothing else, and needs nothing but the standard library.
is "a soname" "$(basename "$(readlink "$lib/libweir.so")")" \
  "$(objdump -p "$lib/libweir.so" | awk '/SONAME/{print $2}')"
shown=$(nm -D --defined-only -C "$lib/libweir.so" | cut -c20- | sed 's/@@.*//')
is "no symbol of others" "" "$(grep -Ev '^((vtable|typeinfo|typeinfo name) for )?weir(_[a-z]|::)|^WEIR_C' <<<"$shown")"
is "no symbol of our own inside" "" "$(grep -E 'Store|Impl::|weir::table|WaitQueue|weir::resp|Cell' <<<"$shown")"
needed=$(objdump -p "$lib/libweir.so" | awk '/NEEDED/{print $2}')
is "no library but the standard ones" "" "$(grep -Ev '^(libstdc\+\+|libgcc_s|libc|libm|ld-linux.*)\.so' <<<"$needed")"

# Four processes that know nothing of each other admit 1000 together, and a fifth, later, none.
for i in 1 2 3 4; do timeout 600 ./shared state.weir 2000 >"count$i" 2>"err-shared$i" & pids[i]=$!; done
for i in 1 2 3 4; do
  wait "${pids[i]}"
  is "process $i ends well" 0 "$?"
done
is "four processes admit the limit, exactly" 1000 "$(awk '{n += $1} END {print n}' count[1-4])"
is "it was kept" 0 "$(timeout 600 ./shared state.weir 10)"
finish
