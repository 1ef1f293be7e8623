# The disk is full: when the state file is made, one line says so and nothing is left behind; later it does no harm,
# for all of the file's room was taken when it was made. On a file system of its own, in a namespace of its own.
if [ -z "${WEIR_TEST_MOUNTS:-}" ]; then
  # Root of this machine needs no user namespace, and may not be allowed one.
  for ways in "-m" "-rm"; do
    unshare $ways true 2>/dev/null || continue
    WEIR_TEST_MOUNTS=1 exec unshare $ways bash "$0" "$@"
  done
  echo "skip  this machine lets us mount nothing"
  exit 77
fi
source "$(dirname "$0")/lib.bash"
disk=$work/disk
mkdir "$disk"
mount -t tmpfs -o size=1m tmpfs "$disk" 2>"$work/mount_err" ||
  { echo "skip  cannot mount a tmpfs: $(cat "$work/mount_err")"; exit 77; }

timeout 600 "$program" serve --http 127.0.0.1:0 --resp 127.0.0.1:0 --state "$disk/state" --keys 100000 \
  >"$work/refused" 2>&1
is "no room for the state: exit code" 1 $?
is "one line" 1 "$(wc -l <"$work/refused")"
has "that names the file" "$disk/state: the disk is full" "$(cat "$work/refused")"
has "and what to do" "free some space, or use fewer keys" "$(cat "$work/refused")"
echo "      $(cat "$work/refused")"
is "nothing is left behind" "" "$(ls -A "$disk")"
is "and the room is free" 0 "$(df --output=used "$disk" | tail -1 | tr -d ' ')"
umount "$disk"

mount -t tmpfs -o size=16m tmpfs "$disk"
start_server --state "$disk/state" --memory 8000000
spend() { # KEY TIMES
  for ((i = 0; i < $2; ++i)); do echo "CL.THROTTLE $1 9 10 86400"; done |
    timeout 600 redis-cli -p "$resp_port" | sed -n '1~5p' | grep -c '^0$'
}
is "a state with room: seven of ten" 7 "$(spend user:42 7)"
dd if=/dev/zero of="$disk/filler" bs=64k 2>/dev/null
is "the disk is full now" 0 "$(df --output=avail "$disk" | tail -1 | tr -d ' ')"
out=$(timeout 600 "$program" bench --json --resp ":$resp_port" --each-key --keys 100000 \
  --command 'CL.THROTTLE {key} 9 10 86400')
is "100,000 new keys on a full disk: all answered, no errors" "100000 0" \
  "$(sed -n 's/.*"checks": \([0-9]*\),.*"errors": \([0-9]*\).*/\1 \2/p' <<<"$out")"
is "three are left" 3 "$(spend user:42 7)"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
start_server --state "$disk/state"
is "kill -9 and a start on the full disk: spent stays spent" 0 "$(spend user:42 7)"
still_answers "on a full disk"
kill -TERM "$pid"
wait "$pid"
is "it stops in order" 0 $?
umount "$disk"
finish
