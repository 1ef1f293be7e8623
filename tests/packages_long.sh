#!/usr/bin/env bash
# The packages in a bare Debian: apt installs them, the server starts as its unit says, is upgraded while it runs,
# removed and purged. Programs are built with the library there. Called with the program and the checkout, after a
# build.
#
# The root has no systemd. setpriv starts the server, and a fake systemctl writes down how the packages call it.
source=$2
. "$source/tests/server/lib.bash"
. "$source/tests/bare_root.bash"

build=$(dirname "$program")
[ -f "$build/CMakeCache.txt" ] || build=$build/release
bare_root bare-bookworm
mkdir -p "$root"/packages/{old,new,new2,new3} "$work/again"
version=$("$program" version | cut -d' ' -f2)
quietly "packages" bash "$source/packaging/package.sh" "$source" "$build" "$root/packages/old"
quietly "the same once more" bash "$source/packaging/package.sh" "$source" "$build" "$work/again"
is "are the same, byte for byte" "" "$(diff -r "$root/packages/old" "$work/again" 2>&1)"
quietly "of a higher version" bash "$source/packaging/package.sh" "$source" "$build" "$root/packages/new" "$version+1"
for n in 2 3; do
  quietly "and higher, $n" bash "$source/packaging/package.sh" "$source" "$build" "$root/packages/new$n" "$version+$n"
done

quietly "apt's lists" inside apt-get -q update
quietly "installs" inside sh -c 'apt-get -q -y --no-install-recommends install /packages/old/weir_*.deb'
is "the program runs" "weir $version" "$(inside weir version)"
has "it has a user" "weir" "$(inside getent passwd weir)"
is "whose is the state" "weir:weir 750" "$(inside stat -c '%U:%G %a' /var/lib/weir)"
is "the service is enabled" /lib/systemd/system/weir.service \
  "$(readlink "$root/etc/systemd/system/multi-user.target.wants/weir.service")"
has "man pages" "rate limiter" "$(zcat "$root/usr/share/man/man1/weir.1.gz")"

# Other ports, since others test beside us: a conffile that was changed.
sed -i -E 's/^(http|grpc|resp|admin) = .*/\1 = 127.0.0.1:0/' "$root/etc/weir/weir.conf"

# start: runs the command line of the unit as its user; sets server and http.
start() {
  local line n=${#server_pids[@]}
  line=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/weir.service")
  # shellcheck disable=SC2086
  "$inside" "$root" setpriv --reuid weir --regid weir --init-groups --no-new-privs $line \
    >"$work/out$n" 2>"$work/err$n" &
  server=$!
  server_pids+=("$server")
  until_true 20 is_announced "$work/out$n"
  is "it starts" yes "$(is_announced "$work/out$n" && echo yes || cat "$work/err$n")"
  http=$(awk '/^http /{print $2}' "$work/out$n")
}
spend() { curl -s -o /dev/null -m 20 -w '%{http_code}' "$http/v1/check" -d '{"key":"user:42","limit":"2/year"}'; }

start
is "it answers by the limit" "200 200 429" "$(spend) $(spend) $(spend)"
is "as its user" weir "$(inside stat -c %U "/proc/$server")"
quietly "upgrades" inside sh -c 'dpkg -i /packages/new/weir_*.deb'
is "to the higher version" "$version+1" "$(inside dpkg-query -W -f '${Version}' weir)"
is "it ran all the time" 429 "$(spend)"
is "the conffile is as it was changed" 4 "$(grep -c '127.0.0.1:0' "$root/etc/weir/weir.conf")"

# --- where systemd runs ---------------------------------------------------------------------------
# A systemctl that says the service is active, knows its process from /run/main_pid, and passes a signal on; and a
# deb-systemd-invoke. Both write down their arguments.
mkdir -p "$root/run/systemd/system" "$root/stubs" "$root/deaf"
cat >"$root/stubs/systemctl" <<'SH'
#!/bin/sh
echo "systemctl $*" >>/run/told
case "$*" in
  *show*MainPID*) cat /run/main_pid ;;
  *kill*SIGUSR2*) [ -e /run/is_deaf ] || kill -USR2 "$(cat /run/main_pid)" ;;
esac
SH
printf '#!/bin/sh\necho "deb-systemd-invoke $*" >>/run/told\n' >"$root/stubs/deb-systemd-invoke"
printf '#!/bin/sh\n' >"$root/deaf/sleep" # half a minute of waiting in no time
chmod +x "$root"/stubs/* "$root/deaf/sleep"
# with_systemd COMMAND...: with the folders of $stubs in front of the path.
with_systemd() {
  : >"$root/run/told"
  inside env PATH="${stubs:-/stubs}:/usr/sbin:/usr/bin:/sbin:/bin" "$@"
}
told() { cat "$root/run/told"; }
echo "$server" >"$root/run/main_pid"

# The server hands its sockets over to the program that is installed now. That program itself would notify systemd.
old=$server
{
  has_child() { pgrep -P "$old" >/dev/null; }
  until_true 60 has_child && child=$(pgrep -P "$old" | head -n 1) && until_true 60 is_gone "$old" &&
    echo "$child" >"$root/run/main_pid"
} &
follower=$!
quietly "upgrades where systemd runs" with_systemd sh -c 'dpkg -i /packages/new2/weir_*.deb'
wait "$follower"
wait "$old"
is "it hands over in peace" 0 $?
server=$(cat "$root/run/main_pid")
server_pids+=("$server")
has "by a signal to the service" "systemctl kill --kill-whom=main --signal=SIGUSR2 weir.service" "$(told)"
is "and it is not restarted" "" "$(told | grep -E 'restart|stop')"
is "the one that lies there now serves" yes "$([ "/proc/$server/exe" -ef "$root/usr/bin/weir" ] && echo yes)"
is "which knows what was spent" 429 "$(spend)"

# A server that does not hand over is restarted, and the package says why.
touch "$root/run/is_deaf"
stubs=/stubs:/deaf quietly "upgrades where the server is deaf" with_systemd sh -c 'dpkg -i /packages/new3/weir_*.deb'
has "says that it did not hand over" "weir: the running server did not hand over; it is restarted" "$said"
has "it is restarted" "deb-systemd-invoke restart weir.service" "$(told)"
is "after it was waited for" 36 "$(told | grep -c 'show --property=MainPID')"
is "it still serves" 429 "$(spend)"
stop() { kill "$server" && until_true 30 is_gone "$server" && { wait "$server" 2>/dev/null; [ $? -ne 1 ]; }; }
stop
is "it stops in peace" 0 $?
start
is "what was spent stays spent" 429 "$(spend)"
stop

quietly "is removed" with_systemd dpkg -r weir
sockets=$(told | grep -n 'invoke stop.*weir-grpc.socket' | cut -d: -f1)
service=$(told | grep -n 'invoke stop.*weir.service' | cut -d: -f1)
is "where systemd runs, its sockets are stopped, and then the service" yes \
  "$([ -n "$sockets" ] && [ "${service:-0}" -gt "$sockets" ] && echo yes || told)"
for unit in "$source"/packaging/systemd/*.socket; do
  has "  $(basename "$unit") among them" "$(basename "$unit")" "$(told | grep 'invoke stop')"
done
rm -r "$root/run/systemd"
is "the program is gone" "" "$(ls "$root/usr/bin/weir" 2>/dev/null)"
is "state and config are not" 2 "$(find "$root/var/lib/weir/weir.state" "$root/etc/weir/weir.yaml" | wc -l)"
quietly "is purged" inside dpkg -P weir
is "nothing is left" "" "$(find "$root"/etc "$root"/var/lib/{weir,systemd} -name '*weir*' 2>/dev/null)"

# The library.
packages=$root/packages
bare_root bare-compiler g++,cmake,make,pkgconf
mv "$packages" "$root/packages"
cp -r "$source/examples" "$root/examples"
quietly "apt's lists" inside apt-get -q update
quietly "the library installs" inside sh -c \
  'apt-get -q -y --no-install-recommends install /packages/old/libweir*.deb'
quietly "check.cc by pkg-config" inside sh -c \
  'g++ -std=c++20 -Wall -Wextra -Werror examples/check.cc $(pkg-config --cflags --libs weir) -o check && ./check'
quietly "check.c by pkg-config" inside sh -c \
  'gcc -std=c99 -Wall -Wextra -Werror examples/check.c $(pkg-config --cflags --libs weir) -o check_c && ./check_c'
quietly "examples by CMake" inside sh -c 'cmake -S examples -B built && cmake --build built'
quietly "check, by the shared library" inside built/check
quietly "check_static" inside built/check_static
quietly "rules" inside built/rules examples/weir.yaml
quietly "the library is purged" inside dpkg -P libweir-dev libweir0.1
finish
