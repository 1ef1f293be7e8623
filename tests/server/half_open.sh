# Peers that vanish: their machine lost its power or a firewall forgot them, and no packet tells. The kernel asks and
# gives up; a peer that is only silent stays. In a network of its own, in which a firewall drops what we want lost.
# half_open_long.sh does the same on a quiet machine, and holds it to five seconds.
if [ "${WEIR_IN_NETWORK:-}" != yes ]; then
  PATH=$PATH:/usr/sbin:/sbin
  for tool in ip nft unshare; do
    command -v "$tool" >/dev/null || { echo "skip  half_open: needs $tool"; exit 77; }
  done
  if ! unshare -rn sh -c 'ip link set lo up && nft add table inet trial' 2>/dev/null; then
    echo "skip  half_open: no network of its own is permitted here"
    exit 77
  fi
  export PATH
  WEIR_IN_NETWORK=yes exec unshare -rn bash "$0" "$@"
fi
source "$(dirname "$0")/lib.bash"
ip link set lo up

# open_at PORT: how many connections the server's side of it has.
open_at() {
  awk -v port=":$(printf '%04X' "$1")" '$4 == "01" && substr($2, length($2) - 4) == port' /proc/net/tcp | wc -l
}
has_open() { [ "$(open_at "$1")" == "$2" ]; }

start_server --keepalive 0 --threads 1
never=$resp_port
start_server --keepalive 1 --threads 1
exec 5<>"/dev/tcp/127.0.0.1/$never" 6<>"/dev/tcp/127.0.0.1/$resp_port" 7<>"/dev/tcp/127.0.0.1/$resp_port"
exec 8<>"/dev/tcp/127.0.0.1/$http_port" 9<>"/dev/tcp/127.0.0.1/$grpc_port"
for socket in 5 6 7; do
  printf 'PING\r\n' >&"$socket"
  read -r -t 10 answer <&"$socket"
  is "connection $socket" "+PONG" "${answer%$'\r'}"
done
is "four at the server that asks" "2 1 1" "$(open_at "$resp_port") $(open_at "$http_port") $(open_at "$grpc_port")"

# What vanishes is known by the client's ports; 7 stays.
port_of() {
  local inode
  inode=$(readlink "/proc/$$/fd/$1" | tr -dc 0-9)
  echo $((16#$(awk -v inode="$inode" '$10 == inode {sub(/.*:/, "", $2); print $2}' /proc/net/tcp)))
}
lost="$(port_of 5), $(port_of 6), $(port_of 8)"
nft -f - <<NFT
table inet trial {
  chain lost {
    type filter hook input priority 0;
    tcp sport { $lost } drop
    tcp dport { $lost, $(port_of 9) } drop
  }
}
NFT
is "the firewall is in place" 0 $?
# No keepalive is sent while something is on its way; that nobody confirms it for as long ends the connection as well.
printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0' >&9
begin=$(now_us)
# reaped NAME PORT LEFT: with --keepalive 1 that is a second of silence and three questions, a second apart.
reaped() {
  until_true 30 has_open "$2" "$3"
  is "$1" "$3" "$(open_at "$2")"
  took "  seconds until then" "$(seconds_since "$begin")" 5
}
reaped "the one that vanished is noticed, the silent one stays" "$resp_port" 1
reaped "on the other door, too" "$http_port" 0
reaped "so is one that does not confirm what it is sent" "$grpc_port" 0
is "who does not ask, does not know" 1 "$(open_at "$never")"
printf 'PING\r\n' >&7
read -r -t 10 answer <&7
is "the silent one is served" "+PONG" "${answer%$'\r'}"

still_answers "after all"
finish
