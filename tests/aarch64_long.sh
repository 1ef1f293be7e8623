#!/usr/bin/env bash
# The table on aarch64: its tests and the contract of the stores, cross-built and run under qemu.
#
# What differs there is in src/table/word.h: exclusive pairs instead of one instruction. aarch64 also has a weaker
# memory order, which qemu on x86-64 does not show. Called with the program and the checkout.
set -euo pipefail
source_dir=$2

for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null || { echo "$tool is missing: ./dev test --long installs it" >&2; exit 1; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
googletest=/usr/src/googletest/googletest
launcher=$(command -v ccache || true)

compile() {
  # tl::expected is a header without a processor; the cross compiler looks for headers in a folder of its own.
  $launcher aarch64-linux-gnu-g++ -std=c++20 -O1 -g0 -D_GLIBCXX_ASSERTIONS -I"$source_dir/include" -I"$source_dir/src" \
    -I"$source_dir/tests" -I"$googletest" -I"$googletest/include" -idirafter /usr/include \
    -DWEIR_SOURCE_DIR="\"$source_dir\"" -c "$1" -o "$folder/$(basename "${1%.cc}").o"
}
export -f compile
export launcher source_dir googletest folder

tests=(src/table/{word,layout,pack,arena,ring_log,registry,operation}_test.cc
  src/base/siphash_test.cc tests/{store_contract,full_table}_test.cc)
find "$source_dir"/src/{algorithm,table} -name '*.cc' ! -name '*_test.cc' >"$folder/sources"
printf '%s\n' "$source_dir"/src/{base/clock,limiter/compile,store/memory_store}.cc \
  "${tests[@]/#/$source_dir/}" \
  "$source_dir"/tests/{oracle,oracle_engine,cell_engine,glibc_windows,trace}.cc "$googletest"/src/gtest-all.cc \
  "$googletest"/src/gtest_main.cc >>"$folder/sources"
xargs -P "$(nproc)" -I{} bash -c 'compile {}' <"$folder/sources"
aarch64-linux-gnu-g++ -static "$folder"/*.o -pthread -o "$folder/tests"
qemu-aarch64 "$folder/tests" --gtest_brief=1
