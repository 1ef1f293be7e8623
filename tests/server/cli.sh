# The command line: help that starts with examples, the version, and hints for mistyped words. Exit codes: 0 done, 1
# failed, 2 not understood.
source "$(dirname "$0")/lib.bash"

run() { timeout 600 "$program" "$@" 2>&1; }

help=$(run --help)
is "--help succeeds" 0 $?
has "--help has examples" "weir serve --config weir.yaml" "$help"
is "and leads with them" yes "$(head -5 <<<"$help" | grep -q 'weir serve' && echo yes)"
is "without arguments, the help" "$help" "$(run)"
is "weir help, the help" "$help" "$(run help)"
has "serve --help" "--keys" "$(run serve --help)"
is "version and --version agree" "$(run version)" "$(run --version)"
is "and look like a version" yes "$(run version | grep -Eqx 'weir [0-9]+\.[0-9]+\.[0-9]+' && echo yes)"

mistaken() { refuses 2 "$@"; }
refused() { refuses 1 "$@"; }
mistaken "Did you mean weir serve?" srve
mistaken "Did you mean weir version?" verison
mistaken "See weir --help" frobnicate
mistaken "See weir serve --help" serve --htp :0
mistaken "See weir serve --help" serve --keys 0
mistaken "See weir serve --help" serve --keys many
mistaken "'1M' is not a whole number from 1 to 1000000000" serve --keys 1M
mistaken "'0' is not a whole number" serve --connections 0
mistaken "See weir" serve --http
refused "the port is missing" serve --http 127.0.0.1
refused "a port alone needs a colon before it; write 127.0.0.1:8080, [::1]:8080, :8080 or unix:" serve --http 8080
refused "a number from 0 to 65535" serve --http :http
refused "not an IP address" serve --resp example.org:6380
refused "leave out the scheme" serve --resp redis://127.0.0.1:6380
refused "--grpc: '' is not an address" serve --grpc ''
refused "a non-loopback address requires --admin-token-file" serve --admin 0.0.0.0:8082
refused "write memory, or the URL of a Redis" serve --store disk
refused "with TLS rediss://" serve --store mysql://127.0.0.1
refused "cannot be opened" serve --password-file /nowhere/password
refused "/nowhere/weir.state" serve --state /nowhere/weir.state

# What cannot be printed was not done.
for words in version --version --help help 'serve --help' schema 'completion bash' manual; do
  # shellcheck disable=SC2086
  said=$(timeout 600 "$program" $words 2>&1 >/dev/full)
  is "weir $words, to a full disk: exit code" 1 $?
  is "  and why" "weir: cannot write: No space left on device" "$said"
done

# What it prints on starting are commands that work.
start_server --keys 3
out=$(cat "$work/out0")
curl_line=$(grep -o 'curl .*' <<<"$out")
has "the curl line works" "HTTP/1.1 200 OK" "$(eval "timeout 20 $curl_line -s")"
redis_line=$(grep -o 'redis-cli .*' <<<"$out")
is "the redis-cli line works" "0 16 15 -1 2" "$(eval "timeout 20 $redis_line" | paste -sd' ')"
spent=$(for i in $(seq 300); do echo "cl.throttle key$i 0 1 1000"; done | redis-cli -p "$resp_port" | awk 'NR % 5 == 1')
# The two commands above have a key each, for as long as it takes them to recover.
passed=$(grep -c '^0' <<<"$spent")
is "--keys bounds the keys: to a page of them" 1 "$((passed >= 250 && passed <= 252))"
still_answers "full"
finish
