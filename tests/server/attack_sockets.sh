# Clients that take time, memory or descriptors: slow senders, clients that never read, more connections than
# descriptors, many idle connections, thousands of resets. attack_sockets_long.sh uses the full numbers.
source "$(dirname "$0")/lib.bash"
slow=${slow:-200} header_timeout=${header_timeout:-3} idle=${idle:-2000} active=${active:-200} resets=${resets:-10000}
crowd=${crowd:-1000}
attack() { timeout 600 "$python" "$(dirname "$0")/attack_sockets.py" "$@" 2>&1; }
# value NAME TEXT: of NAME=VALUE in the text.
value() { sed -n "s/^$1=//p" <<<"$2"; }
# asks CONNECTIONS SECONDS: what the bench prints for two thousand checks a second in all.
asks() {
  "$program" bench --resp 127.0.0.1:"$resp_port" --connections "$1" --pipeline 1 --rate 2000 --keys 1000 \
    --warmup 0.3 --seconds "$2" --json
}
# served NAME BENCH: clients were answered, without an error. Whether all in time depends on the machine.
served() {
  has "$1" '"errors": 0' "$2"
  at_least "$1: checks" "$(number checks "$2")" 1
  took "$1: unanswered" "$(number unanswered "$2")" 0
}
p99_us() { echo $(($(number p99_ns "$1") / 1000)); }

# Slow senders, which have some seconds for a header. Other clients are measured before and beside them.
start_server --header-timeout "$header_timeout"
calm=$(p99_us "$(asks 4 1.5)")
attack slow "$slow" "$http_port" "$grpc_port" "$resp_port" >"$work/slow" &
attacker=$!
until_true 60 grep -q opened "$work/slow" || is "slow: all are connected" yes no
others=$(asks 4 1.5)
wait "$attacker"
told=$(cat "$work/slow")
is "slow: none of $((3 * slow)) is left" 0 "$(value left "$told")"
# The server looks once a second; a quarter is for one client that watches them all.
for protocol in http grpc resp; do
  took "slow: seconds of $protocol" "$(value $protocol "$told")" $((header_timeout + 1)).25
  counts_refused slow "$protocol" slow "$slow"
done
served "slow: other clients are served" "$others"
took "slow: p99 of other clients in us (alone $calm)" "$(p99_us "$others")" $((2 * calm + 1000))
kill "$pid"

# Sixty clients that never read. Each may leave a MiB unread; beyond 4 MiB for all, the server disconnects and counts
# them. The bound on memory includes what a turn of each thread collects. Without --buffers, it would be twice as much.
start_server --write-timeout 2 --buffers 4
redis ping >/dev/null
before=$(rss_kib "$pid")
told=$(attack unread 60 "$resp_port")
is "unread: all are disconnected" 60 "$(value cut "$told")"
took "unread: seconds until then" "$(value seconds "$told")" 20
most=$(awk '/^VmHWM/{print $2}' "/proc/$pid/status")
at_most "unread: more KiB than before" $((most - before)) $((32 * 1024))
still_answers "unread"
counts_refused "unread, in all" resp buffers 1

# Reset at once.
told=$(attack leave "$resets" "$pid" "$resp_port")
is "resets: it still accepts" 1 "$(value answered "$told")"
took "resets: seconds until all descriptors are back" "$(value back_seconds "$told")" 1
at_most "resets: more descriptors than before" "$(value more "$told")" 1
kill "$pid"

# More connections than descriptors.
start_with_descriptors 256 --threads 1
told=$(attack crowd "$crowd" "$pid" "$resp_port" "$admin_port")
is "crowd: the admin port answers meanwhile" 1 "$(value admin "$told")"
is "crowd: the first client is served" yes "$([ "$(value served "$told")" -ge 5 ] && echo yes)"
took "crowd: percent of a core" "$(value percent "$told")" 10
is "crowd: when they disconnect, another client can connect" 1 "$(value again "$told")"
took "crowd: seconds until then" "$(value again_seconds "$told")" 0.1
kill "$pid"

# Idle connections, half of HTTP and half of RESP, and what active ones notice of them, which ask two thousand times a
# second together. What a hundred wait alone is what it is compared with, on a machine that has nothing else to do.
start_server --connections $((idle + active + 100)) --idle-timeout 600
base=$(rss_kib "$pid")
calm=$(p99_us "$(asks 100 1.5)")
coproc waiting { attack idle "$idle" "$http_port" "$resp_port"; }
IFS= read -r -t 120 -u "${waiting[0]}" line
is "idle: all $idle were served" "served=$idle" "$line"
told=$(asks "$active" 1.5)
served "idle: $active active ones are answered" "$told"
took "idle: p99 of $active active ones in us (100 alone: $calm)" "$(p99_us "$told")" $((2 * calm + 1000))
at_most "idle: more KiB than before" $(($(rss_kib "$pid") - base)) $((100 * 1024))
echo >&"${waiting[1]}"
IFS= read -r -t 30 -u "${waiting[0]}" line
is "idle: they are still connected" "open=$idle" "$line"
finish
