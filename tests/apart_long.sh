#!/usr/bin/env bash
# Each source file includes what it needs. Other builds compile a dozen files as one, where a file can use what the one
# before it includes; this test compiles each file of the program alone, and each header. Called as
# `apart_long.sh PROGRAM SOURCE_DIR`; the program is not used.
source=$2
. "$source/tests/server/lib.bash"

said=$(cmake -S "$source" -B "$work/apart" -G Ninja -DWEIR_APART=ON -DWEIR_TESTS=OFF -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_CXX_FLAGS='-O0 -g0' -DWEIR_PROGRAM_DIR="$work/apart" 2>&1 &&
  cmake --build "$work/apart" --target weir weir_headers 2>&1)
is "each file compiles alone" 0 "$?"
[ "$failures" -eq 0 ] || echo "$said" | grep -A 9 -m 5 'error:\|CMake Error'
is "the program runs" 0 "$("$work/apart/weir" --version >"$work/said" 2>&1; echo "$?")"
finish
