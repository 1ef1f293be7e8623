#!/usr/bin/env bash
# The Debian packages of this build: lintian finds nothing, systemd accepts the unit and rates it safe, the program is
# hardened, the config is valid, and each file is in its place. Called as `package.sh PROGRAM SOURCE_DIR`, after a
# build. packages_long.sh tests the installation.
source=$2
. "$source/tests/server/lib.bash"
for tool in dh lintian systemd-analyze; do
  command -v "$tool" >/dev/null || { echo "skip  package: $tool is missing; ./dev setup brings it"; exit 77; }
done

build=$(dirname "$program")
[ -f "$build/CMakeCache.txt" ] || build=$build/release
mkdir "$work/packages" "$work/root"
# To compress as well as can be takes longer than all else, and is not what is tested.
DPKG_DEB_COMPRESSOR_LEVEL=0 bash "$source/packaging/package.sh" "$source" "$build" "$work/packages" \
  >"$work/err-package" 2>&1
is "packages are made" 0 $?
cd "$work/packages" || exit 1
version=$("$program" version | cut -d' ' -f2)
arch=$(dpkg --print-architecture)
is "three of them" "libweir-dev_${version}_$arch.deb libweir0.1_${version}_$arch.deb weir_${version}_$arch.deb" \
  "$(ls | paste -sd' ')"
[ "$failures" -eq 0 ] || finish
for package in *.deb; do dpkg-deb -x "$package" "$work/root"; done
is "lintian finds nothing" "" "$(lintian --allow-root --fail-on none ./*.deb 2>&1)"

# What it needs and what it brings.
depends=$(dpkg-deb -f weir_*.deb Depends)
for need in libc6 'libstdc++6' libyaml-cpp libnghttp2 libpq5 libsqlite3-0 tzdata adduser; do
  has "needs $need" "$need" "$depends"
done
is "conffiles" "/etc/weir/weir.conf /etc/weir/weir.yaml" "$(dpkg-deb -I weir_*.deb conffiles | sort | paste -sd' ')"
for file in usr/bin/weir usr/share/man/man1/weir.1.gz usr/share/man/man5/weir.yaml.5.gz \
  usr/share/bash-completion/completions/weir usr/share/zsh/vendor-completions/_weir \
  usr/share/fish/vendor_completions.d/weir.fish lib/systemd/system/weir.service usr/include/weir/weir.h \
  usr/share/doc/weir/copyright usr/share/doc/weir/changelog.gz; do
  is "$file" yes "$([ -f "$work/root/$file" ] && echo yes)"
done
is "no page links to a file outside its folder" "" "$(cd "$work/root" && grep -rn '](\.\./' usr/share/doc/*/*.md)"
is "the library lies as Debian has it" 1 "$(find "$work/root/usr/lib" -path '*-linux-gnu*/libweir.so.*.*.*' | wc -l)"

# The program: stripped, and as hard to misuse as the compiler makes it.
elf=$(readelf -W -h -l -d -S --dyn-syms "$work/root/usr/bin/weir")
has "position independent" "DYN (Position-Independent Executable file)" "$elf"
has "relro" GNU_RELRO "$elf"
has "bound at the start" BIND_NOW "$elf"
has "stack protector" __stack_chk_fail "$elf"
has "fortified" _chk@GLIBC "$(grep -v __stack_chk_fail <<<"$elf")"
is "stripped" "" "$(grep -F .symtab <<<"$elf")"
is "no stack to execute" "" "$(grep 'GNU_STACK.*RWE' <<<"$elf")"

# The config and the settings that it comes with.
has "the config is right" "rule" "$("$program" validate --strict "$work/root/etc/weir/weir.yaml" 2>&1)"
"$program" validate --strict "$work/root/etc/weir/weir.yaml" >/dev/null 2>&1
is "without a warning" 0 $?
start_server --settings "$work/root/etc/weir/weir.conf" --config "$work/root/etc/weir/weir.yaml" \
  --state "$work/weir.state"
has "the settings are right" "200 OK" "$(post '{"key":"a","limit":"5/minute"}')"

# The unit, as systemd reads it.
units=$work/root/lib/systemd/system unit=$units/weir.service
sed "s#^ExecStart=/usr/bin/weir#ExecStart=$program#" "$unit" >"$work/weir.service"
is "systemd understands the unit" "" "$(systemd-analyze verify --man=no "$work/weir.service" 2>&1 | grep -F weir)"
echo 'Typo=yes' >>"$work/weir.service"
has "and would say what it does not" "Typo" "$(systemd-analyze verify --man=no "$work/weir.service" 2>&1)"
is "and the sockets" "" "$(systemd-analyze verify --man=no "$units"/*.socket 2>&1 | grep 'socket:')"
security=$(systemd-analyze security --no-pager --offline=yes "$unit" 2>&1 | grep -F 'Overall exposure')
echo "      $security"
exposure=$(grep -oE '[0-9]+\.[0-9]' <<<"$security" | tail -n 1)
is "its exposure is below 2.0" yes "$(awk -v x="$exposure" 'BEGIN {print x != "" && x < 2.0 ? "yes" : "no: " x}')"
started=$work/root$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
is "the unit starts what is there" yes "$([ -x "$started" ] && echo yes)"
finish
