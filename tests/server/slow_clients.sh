# Clients that take long, or take all descriptors: the server cuts each off in the end, and other clients do not notice.
# The waits are the server's own timeouts, about ten seconds; they run side by side.
source "$(dirname "$0")/lib.bash"
start_server

# Half a header, then silence.
(printf 'GET / HTTP/1.1\r\nHost: x\r\n' | (
  exec {socket}<>"/dev/tcp/127.0.0.1/$http_port"
  cat >&"$socket"
  timeout 60 cat <&"$socket"
) >"$work/slow_header"; echo $? >"$work/slow_header_code") &
waiting+=($!)

# Questions without end, and none of the answers is read: 20 MB, more than sockets hold.
(
  exec {socket}<>"/dev/tcp/127.0.0.1/$resp_port"
  yes INFO | head -c 20000000 | timeout 40 cat >&"$socket" 2>/dev/null
  echo $? >"$work/never_reads"
) &
waiting+=($!)

# Thirty answers of a megabyte, taken slowly at first: so slowly that for more than ten seconds the kernel has no room
# for more of them. The server waits for a client that takes something.
(
  exec {socket}<>"/dev/tcp/127.0.0.1/$resp_port"
  {
    for i in $(seq 30); do
      printf '*2\r\n$4\r\nECHO\r\n$1000000\r\n'
      head -c 1000000 /dev/zero | tr '\0' 'x'
      printf '\r\n'
    done
    printf 'QUIT\r\n'
  } >&"$socket" 2>/dev/null &
  for i in $(seq 15); do
    head -c 60000 <&"$socket"
    sleep 1
  done | wc -c >"$work/slowly"
  timeout 60 cat <&"$socket" | wc -c >"$work/then_all"
) &
waiting+=($!)

# A mebibyte in small pieces is nothing special.
piecemeal() {
  printf '*2\r\n$4\r\nECHO\r\n$1048576\r\n'
  head -c 1048576 /dev/zero | tr '\0' 'x' | dd bs=4096 status=none
  printf '\r\nQUIT\r\n'
}
echoed=$(
  exec {socket}<>"/dev/tcp/127.0.0.1/$resp_port"
  piecemeal >&"$socket" &
  timeout 60 cat <&"$socket" | wc -c
)
is "ECHO of a mebibyte comes back whole" $((1048576 + 12 + 5)) "$echoed"
still_answers "meanwhile"

# A server that may open few descriptors: more clients than that, no spinning, and all is well when they leave.
main_pid=$pid main_http=$http main_http_port=$http_port main_resp_port=$resp_port
start_with_descriptors 40 --threads 1 # with several loops, the first client could be on any of them
for i in $(seq 60); do
  exec {socket}<>"/dev/tcp/127.0.0.1/$resp_port" && crowd[i]=$socket
done
cpu_ticks() { awk '{print $14 + $15}' "/proc/$pid/stat"; }
complains() { grep -q 'raise `ulimit -n`' "$work"/err1; }
eventually "the log says that descriptors ran out" complains
printf 'PING\r\n' >&"${crowd[1]}"
IFS= read -r -t 60 -u "${crowd[1]}" line
has "the first clients are served" "+PONG" "$line"
before=$(cpu_ticks)
IFS= read -r -t 2 -u "${crowd[1]}" line # two seconds in which nothing arrives
spent=$(($(cpu_ticks) - before))
is "it does not spin (two seconds cost $spent ticks)" yes "$([ "$spent" -lt 20 ] && echo yes)"
close_all "${crowd[@]}"
still_answers "after the crowd"
is "it says so once" 1 "$(grep -c "cannot accept" "$work/err1")"
has "and at the start that there are few" "too few file descriptors for --connections" "$(cat "$work/err1")"

pid=$main_pid http=$main_http http_port=$main_http_port resp_port=$main_resp_port
wait "${waiting[@]}"
has "half a header is answered in the end" "HTTP/1.1 408 Request Timeout" "$(cat "$work/slow_header")"
is "and its connection closed by the server" 0 "$(cat "$work/slow_header_code")"
is "a client that never reads is disconnected" 1 "$(cat "$work/never_reads")"
taken=$(($(cat "$work/slowly") + $(cat "$work/then_all")))
is "a client that reads slowly gets everything" $((30 * (1000000 + 12) + 5)) "$taken"
most=$(awk "/^VmHWM/{print \$2}" "/proc/$pid/status")
is "the server never used more than 32 MiB ($most KiB)" yes "$([ "$most" -lt 32768 ] && echo yes)"
still_answers "at last"
finish
