#!/usr/bin/env bash
# Makes the Debian packages from a finished build: weir, libweir0.1 and libweir-dev.
#
# Called as `package.sh SOURCE_DIR BUILD_DIR OUT_DIR [VERSION]`. The same build gives the same packages, byte for byte:
# file times are those of the last commit, or of the changelog. `./dev package` calls it; tested by tests/package.sh.
set -euo pipefail
source_dir=$(realpath "$1") build=$(realpath "$2") out=$(realpath "$3")
version=${4:-$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp -r "$source_dir"/packaging/{debian,systemd} "$source_dir/examples" "$tree/"
mkdir -p "$tree/etc/weir" "$tree/packages"
cp "$source_dir"/packaging/weir.{yaml,conf} "$tree/etc/weir/"

SOURCE_DATE_EPOCH=$(git -C "$source_dir" log -1 --format=%ct 2>/dev/null ||
  stat -c %Y "$source_dir/CHANGELOG.md")
export SOURCE_DATE_EPOCH WEIR_BUILD=$build DEB_BUILD_OPTIONS=nocheck LC_ALL=C.UTF-8
maintainer=$(sed -n 's/^Maintainer: //p' "$tree/debian/control")
cat >"$tree/debian/changelog" <<TEXT
weir ($version) unstable; urgency=medium

  * NEWS.md in /usr/share/doc/weir lists the changes.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT

cd "$tree"
mkdir -p debian/source
echo '3.0 (native)' >debian/source/format
debian/rules binary DESTINATION="$tree/packages" >"$tree/log" 2>&1 || { cat "$tree/log" >&2; exit 1; }
mv "$tree"/packages/*.deb "$out/"
