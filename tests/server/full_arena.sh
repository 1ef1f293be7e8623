# Distinct clients fill the log arena of a sliding_log rule while the table has slots. Every request is decided and none
# fails. A fresh client is admitted until its limit and then denied. The metric, the log, doctor and `weir state
# inspect` report what happens. /v1/acquire denies if there is no capacity.
source "$(dirname "$0")/lib.bash"
echo 'rules: [{name: login, per: user, limit: 5/hour, algorithm: sliding_log}]' >"$work/weir.yaml"
start_server --config "$work/weir.yaml" --keys 4000 --state "$work/state"

# flood FROM COUNT PATH BODY: COUNT requests on one connection, NAME in the body replaced; the statuses, counted.
flood() {
  timeout 600 "$python" - "$http_port" "$@" <<'PYTHON'
import collections, socket, sys
port, first, count, path, body = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
server = socket.create_connection(("127.0.0.1", port))
answers, counts = server.makefile("rb"), collections.Counter()
for start in range(first, first + count, 100):
    names = range(start, min(start + 100, first + count))
    texts = [body.replace("NAME", f"c{name}") for name in names]
    server.sendall("".join(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(text)}\r\n\r\n{text}"
                           for text in texts).encode())
    for _ in names:
        counts[answers.readline().split()[1].decode()] += 1
        length = 0
        while (line := answers.readline().strip().lower()):
            if line.startswith(b"content-length:"): length = int(line.split(b":")[1])
        answers.read(length)
print(" ".join(f"{status}:{count}" for status, count in sorted(counts.items())))
PYTHON
}
check() { code_of "$http/v1/check" -d "{\"user\":\"$1\"}"; }

is "before the flood no log is compact" 0 "$(metric weir_compacted_logs_total)"
is "every new client is admitted" "200:3000" "$(flood 1 3000 /v1/check '{"user":"NAME"}')"
at_least "some of them are counted in compact form" "$(metric weir_compacted_logs_total)" 1
is "none was denied for lack of room" 0 "$(metric weir_no_room_total)"
is "no key was evicted" 0 "$(metric weir_evictions_total)"
is "a fresh client is admitted until its limit, then denied" "200 200 200 200 200 429 429" \
  "$(for _ in 1 2 3 4 5 6 7; do check fresh && echo; done | paste -sd' ')"
is "clients of the flood have the rest of their limits" "200:3000" "$(flood 1 3000 /v1/check '{"user":"NAME"}')"
began="log arena full, counting sliding_log clients in compact form"
until_true 10 grep -q "$began" "$work/err0"
is "the log says so, once" 1 "$(grep -c "$began" "$work/err0")"
has "doctor names it" "the log arena was full" "$("$program" doctor --admin "127.0.0.1:$admin_port" 2>&1)"

statuses=$(flood 1 3000 /v1/acquire '{"key":"NAME","limit":"2 concurrent"}')
others=$(tr ' ' '\n' <<<"$statuses" | grep -v "^\(200\|429\):")
is "permits in flight are granted or denied, nothing fails" "" "$others"
has "some are denied" "429:" "$statuses"
is "and the rule still decides: a fresh client" 200 "$(check another)"
stop_server
prints "the state file can be inspected" "logs compacted to two counters" weir state inspect "$work/state"

start_server --config "$work/weir.yaml" --state "$work/state"
is "what was used is still used after a restart" 429 "$(check fresh)"
is "the other clients are still decided" "200:3000" "$(flood 1 3000 /v1/check '{"user":"NAME"}')"
finish
