# A PostgreSQL server of the test's own, in its work folder: started, killed, frozen, made read-only.
#
# PostgreSQL refuses to run as root, so then it runs as `nobody`. Skips the test where PostgreSQL is missing.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
pg_bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[ -n "$pg_bin" ] || { echo "skip  PostgreSQL is not there; ./dev setup brings it" && exit 77; }
pg_work=$(mktemp -d)
pg_as=()
if [ "$(id -u)" == 0 ]; then
  pg_as=(setpriv --reuid=nobody --regid=nogroup --clear-groups --)
  chown nobody:nogroup "$pg_work"
fi
chmod 755 "$pg_work"

in_pg_work() { (cd "$pg_work" && exec env -i PATH="$PATH" LC_ALL=C "${pg_as[@]}" "$@"); }

# pg_start [SETTING...]: on a socket in its folder, and on a port of loopback.
pg_start() {
  local settings=(-c "unix_socket_directories=$pg_work" -c listen_addresses= -c fsync=off -c max_connections=20)
  local one
  for one; do settings+=(-c "$one"); done
  in_pg_work "$pg_bin/postgres" -D "$pg_work/data" "${settings[@]}" >>"$pg_work/log" 2>&1 &
  pg_pid=$!
  server_pids+=("$pg_pid")
  until_true 20 pg_ready || { echo "PostgreSQL does not start:" && tail -20 "$pg_work/log" && exit 1; }
}
pg_ready() { in_pg_work "$pg_bin/pg_isready" -q -h "$pg_work" -U weir -d postgres; }
# pg_stop SIGNAL: INT is fast, QUIT is at once, and closes connections without a message.
pg_stop() {
  local main
  main=$(head -1 "$pg_work/data/postmaster.pid" 2>/dev/null) || return 0
  kill "-$1" "$main" 2>/dev/null
  pg_is_gone() { ! kill -0 "$main" 2>/dev/null; }
  until_true 20 pg_is_gone
}
# pg_signal SIGNAL: to the server and all that it has started.
pg_signal() {
  local main
  main=$(head -1 "$pg_work/data/postmaster.pid")
  kill "-$1" "$main" $(pgrep -P "$main")
}
pg() { in_pg_work psql -h "$pg_work" -U weir -d postgres -qAtX -v ON_ERROR_STOP=1 -c "$1"; }

in_pg_work "$pg_bin/initdb" -D "$pg_work/data" -U weir --auth=trust --no-sync -E UTF8 --locale=C >"$pg_work/log" 2>&1 ||
  { echo "no database can be made:" && tail "$pg_work/log" && exit 1; }
pg_url="postgresql:///postgres?host=$pg_work&user=weir"
trap 'pg_signal CONT 2>/dev/null; pg_stop QUIT 2>/dev/null; cleanup; rm -rf "$pg_work"' EXIT
