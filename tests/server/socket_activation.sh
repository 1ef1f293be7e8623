# Sockets that the server inherits: it serves on them whatever its flags say, and refuses unusable ones. give_sockets.py
# does what systemd does, and so does systemd's own tool where it is available.
source "$(dirname "$0")/tls.bash"

# activate NAME=KIND... -- ARGUMENTS...: sets pid.
activate() {
  local sockets=()
  while [ "$1" != -- ]; do sockets+=("$1") && shift; done
  shift
  : >"$work/out"
  "$python" "$source_dir/tests/server/give_sockets.py" "${sockets[@]}" -- "$program" serve --shed-after 0 "$@" \
    >"$work/out" 2>"$work/err" &
  started
}
port_of() { awk "/^$1 /{print \$2; exit}" "$work/err"; }

# More sockets than loops, and fewer: every one is served.
for threads in 1 3; do
  activate http=tcp http=tcp resp="unix:$work/resp$threads" admin=tcp -- --grpc off --resp off --threads "$threads"
  eventually "$threads threads: it starts" is_announced "$work/out"
  http=http://127.0.0.1:$(port_of http)
  has "  it says where it is" "http  $http" "$(cat "$work/out")"
  answered=0
  for _ in $(seq 40); do [ "$(curl -s -m 60 "$http/livez")" == ok ] && answered=$((answered + 1)); done
  is "  every socket of a listener is served" 40 "$answered"
  is "  one in the file system, although the flag says off" PONG "$(timeout 600 redis-cli -s "$work/resp$threads" ping)"
  is "  the admin listener" ok "$(curl -s -m 60 "http://127.0.0.1:$(port_of admin)/livez")"
  ends_well "  it ends" INT
  is "  and does not remove the file of the socket" yes "$([ -S "$work/resp$threads" ] && echo yes)"
done

# Whether an inherited listener uses TLS depends on its socket, not on its flag.
authority ca
certificate ca server
activate http=tcp resp="unix:$work/resp_tls" -- --http "unix:$work/unused" --grpc off --resp :0 --admin off \
  --tls-cert "$work/server.pem" --tls-key "$work/server.key"
until_true 20 is_announced "$work/out"
is "a TCP socket speaks TLS though the flag names a file" ok "$(secure_curl "https://127.0.0.1:$(port_of http)/livez")"
is "a file speaks none though the flag names a port" PONG "$(timeout 600 redis-cli -s "$work/resp_tls" ping)"
stop_server INT

# refused NAME PART SOCKETS...
refused() {
  activate "${@:3}" -- --http :0 --grpc off --resp off --admin off
  wait "$pid"
  is "$1: exit code" 1 $?
  has "$1: says what to do" "$2" "$(cat "$work/err")"
}
refused "a datagram socket" "is not a stream socket; write ListenStream= in its .socket unit" http=udp
refused "a socket that does not listen" "is not a listening socket; write Accept=no" http=deaf
refused "a file" "descriptor 4 of LISTEN_FDS is not an open socket" http=tcp grpc=file
refused "no name" "has no name; write FileDescriptorName=http, grpc, resp or admin" -=tcp
refused "another name" "is called 'weir.socket'; write FileDescriptorName=" weir.socket=tcp
refused "an admin listener for other machines" "where other machines can control the server" admin=all

# systemd's own tool starts it when the first client comes.
if command -v systemd-socket-activate >/dev/null; then
  systemd-socket-activate -l "$work/http" --fdname=http "$program" serve --grpc off --resp off --admin off \
    >"$work/out" 2>"$work/err" &
  started
  until_true 20 test -S "$work/http"
  is "systemd-socket-activate: the first client is served" ok \
    "$(curl -s -m 60 --unix-socket "$work/http" http://weir/livez)"
fi
finish
