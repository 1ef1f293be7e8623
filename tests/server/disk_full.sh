# The disk is full. When the server creates the state file, it prints one line and leaves nothing behind. Later a full
# disk does no harm, because the file got all its space when it was made. Uses its own file system, in its own
# namespace.
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

no_room=(serve --http 127.0.0.1:0 --resp 127.0.0.1:0 --state "$disk/state" --keys 100000)
refuses 1 "$disk/state: the disk is full" "${no_room[@]}"
refuses 1 "free some space, or use fewer keys" "${no_room[@]}"
is "nothing is left behind" "" "$(ls -A "$disk")"
is "and the room is free" 0 "$(df --output=used "$disk" | tail -1 | tr -d ' ')"
umount "$disk"

mount -t tmpfs -o size=16m tmpfs "$disk"
start_server --state "$disk/state" --memory 8000000
is "a state with room: seven of ten" 7 "$(allowed_of_ten user:42 7)"
dd if=/dev/zero of="$disk/filler" bs=64k 2>/dev/null
is "the disk is full now" 0 "$(df --output=avail "$disk" | tail -1 | tr -d ' ')"
out=$(timeout 600 "$program" bench --json --resp ":$resp_port" --each-key --keys 100000 \
  --command 'CL.THROTTLE {key} 9 10 86400')
is "100,000 new keys on a full disk: all answered, no errors" "100000 0" \
  "$(number checks "$out") $(number errors "$out")"
is "three are left" 3 "$(allowed_of_ten user:42 7)"
kill_server
start_server --state "$disk/state"
is "kill -9 and a start on the full disk: spent stays spent" 0 "$(allowed_of_ten user:42 7)"
still_answers "on a full disk"
ends_well "it stops in order"
umount "$disk"
finish
