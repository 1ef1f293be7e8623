# Peers that vanish without a packet: a machine lost its power, or a firewall dropped its state. The kernel probes and
# gives up; a peer that is only silent stays. Uses its own network, in which a firewall drops what should be lost.
# half_open_long.sh does the same alone on the machine, within five seconds.
source "$(dirname "$0")/own_network.bash"
source "$(dirname "$0")/lib.bash"

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
  read -r -t 60 answer <&"$socket"
  is "connection $socket" "+PONG" "${answer%$'\r'}"
done
is "four at the server that probes" "2 1 1" "$(open_at "$resp_port") $(open_at "$http_port") $(open_at "$grpc_port")"

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
# The kernel sends no keepalive while bytes are unconfirmed. If they stay unconfirmed for as long, it ends the
# connection, too.
printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0' >&9
begin=$(now_us)
# reaped NAME PORT LEFT: with --keepalive 1 that is a second of silence and three questions, a second apart.
reaped() {
  until_true 30 has_open "$2" "$3"
  is "$1" "$3" "$(open_at "$2")"
  took "  seconds until then" "$(seconds_since "$begin")" 5
}
reaped "the one that vanished is noticed, the silent one stays" "$resp_port" 1
reaped "on the other listener, too" "$http_port" 0
reaped "so is one that does not confirm what it is sent" "$grpc_port" 0
is "a server without probes does not notice" 1 "$(open_at "$never")"
printf 'PING\r\n' >&7
read -r -t 60 answer <&7
is "the silent one is served" "+PONG" "${answer%$'\r'}"

still_answers "after all"
finish
