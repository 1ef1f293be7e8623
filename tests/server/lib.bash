# What the server tests share: start a server on free ports, talk to it, compare, clean up.
#
# Each test is run as `bash TEST PROGRAM SOURCE_DIR`, sources this file, and ends with `finish`. Every wait has an
# end. Raw sockets are bash's own /dev/tcp, so that bytes of any kind can be sent without further programs.
#
# Exit codes: 0 all passed, 1 something failed, 77 nothing failed and something could not be tried here, which ctest
# counts as skipped. A script called *_long.sh runs with nothing beside it: `alone` is set, and times are held to the
# numbers that docs/guarantees.md states. All others run on a machine that may be busy, and print times without judging
# them: they wait for what must come, however long it takes, and compare what is right at any speed.
#
# No limit ends its window in a test by chance: those that are spent are of a year, or the test begins where its window
# does (`not_at_the_end_of`, `period_from_now`).
set -u
program=$1
work=$(mktemp -d)
server_pids=()
failures=0
skipped=0
alone=''
[[ $0 != *_long.sh ]] || alone=yes

# descendants_of PID: all processes below it.
descendants_of() {
  local child
  for child in $(pgrep -P "$1"); do
    echo "$child"
    descendants_of "$child"
  done
}

# A server that is killed leaves its workers to others, so they are looked for before.
cleanup() {
  local all=("${server_pids[@]}") pid
  for pid in "${server_pids[@]}" $$; do all+=($(descendants_of "$pid")); done
  for pid in "${all[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT

for tool in curl redis-cli timeout; do
  command -v "$tool" >/dev/null || { echo "this test needs $tool; ./dev setup brings it"; exit 1; }
done

# is NAME EXPECTED ACTUAL
is() {
  if [ "$2" == "$3" ]; then echo "ok    $1"; return; fi
  printf 'FAIL  %s\n      expected: %s\n      got:      %s\n' "$1" "$2" "${3:0:600}"
  failures=$((failures + 1))
}

# has NAME PART TEXT
has() {
  if [[ "$3" == *"$2"* ]]; then echo "ok    $1"; return; fi
  printf 'FAIL  %s\n      should contain: %s\n      got:            %s\n' "$1" "$2" "${3:0:600}"
  failures=$((failures + 1))
}

# at_most NAME VALUE MOST: numbers with a fraction, too.
at_most() {
  is "$1: $2, at most $3" yes "$(awk -v n="$2" -v most="$3" 'BEGIN{if (n != "" && n + 0 <= most) print "yes"}')"
}

# at_least NAME VALUE LEAST
at_least() {
  is "$1: $2, at least $3" yes "$(awk -v n="$2" -v least="$3" 'BEGIN{if (n + 0 >= least) print "yes"}')"
}

# took NAME TIME MOST: a time is held to its bound only where nothing runs beside the test. Everywhere it is printed,
# and must have been measured.
took() {
  if [ -n "$alone" ]; then
    at_most "$@"
  else
    is "$1: $2 (alone at most $3)" yes "$([[ $2 =~ ^[0-9.]+$ ]] && echo yes)"
  fi
}

# pace NAME RATE LEAST: the same for how much is done in a time.
pace() {
  if [ -n "$alone" ]; then
    at_least "$@"
  else
    is "$1: $2 (alone at least $3)" yes "$([[ $2 =~ ^[0-9.]+$ ]] && echo yes)"
  fi
}

# skip NAME WHY: a part of the test cannot be tried here; the rest goes on.
skip() {
  echo "skip  $1: $2"
  skipped=$((skipped + 1))
}

finish() {
  if [ "$failures" -gt 0 ]; then
    echo "$failures failed"
    cat "$work"/err* 2>/dev/null
    exit 1
  fi
  [ "$skipped" -eq 0 ] || { echo "all others passed" && exit 77; }
  echo "all passed"
}

now_us() { echo "${EPOCHREALTIME/[.,]/}"; }
# seconds_since US: with three digits, since a time that now_us told.
seconds_since() { awk -v from="$1" -v to="$(now_us)" 'BEGIN{printf "%.3f", (to - from) / 1e6}'; }

# until_true SECONDS COMMAND...: polls; fails when the time is over. That is a minute at least, since nobody knows how
# busy the machine is: what comes, comes sooner.
until_true() {
  local end=$(($(now_us) + ($1 > 60 ? $1 : 60) * 1000000))
  shift
  until "$@"; do
    [ "$(now_us)" -lt "$end" ] || return 1
    sleep 0.02
  done
}

# not_at_the_end_of PERIOD SECONDS: waits for the next window of PERIOD seconds if this one has fewer SECONDS left.
not_at_the_end_of() {
  local left=$(($1 - $(date +%s) % $1))
  [ "$left" -ge "$2" ] || sleep "$left"
}
# period_from_now LEAST: a period of at least so many seconds whose window has nine tenths before it.
period_from_now() {
  local n now
  now=$(date +%s)
  for ((n = $1; now % n > n / 10; ++n)); do :; done
  echo "$n"
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }
is_announced() { grep -q "^ready" "$1" 2>/dev/null; }

# start_server [ARGUMENTS]: sets pid, http (an URL), http_port, grpc_port, resp_port and admin_port.
# The server sheds no load where other tests run beside it, unless the arguments say when: how much it sheds depends on
# the machine.
start_server() {
  local n=${#server_pids[@]} shed=(--shed-after 0)
  [[ -z $alone && "$*" != *--shed-after* ]] || shed=()
  "$program" serve --http 127.0.0.1:0 --grpc 127.0.0.1:0 --resp 127.0.0.1:0 --admin 127.0.0.1:0 "${shed[@]}" \
    "$@" >"$work/out$n" 2>"$work/err$n" &
  pid=$!
  server_pids+=("$pid")
  is_up_or_gone() { is_announced "$work/out$n" || is_gone "$pid"; }
  if ! until_true 60 is_up_or_gone || ! is_announced "$work/out$n"; then
    echo "FAIL  the server did not start"
    cat "$work/out$n" "$work/err$n"
    exit 1
  fi
  http=$(awk '/^http /{print $2}' "$work/out$n")
  http_port=${http##*:}
  local door
  for door in grpc resp admin; do
    read -r "${door}_port" <<<"$(awk "/^$door /{sub(/.*:/, \"\"); print}" "$work/out$n")"
  done
}

# post BODY [CURL ARGUMENTS]: the whole answer, header and body, without carriage returns.
post() {
  local body=$1
  shift
  curl -s -i -m 60 "$http/v1/check" -d "$body" "$@" | tr -d '\r'
}

# redis ARGUMENTS: the reply on one line.
redis() { timeout 600 redis-cli -p "$resp_port" "$@" 2>&1 | paste -sd' ' | sed 's/ *$//'; }

# raw PORT: sends stdin to the port and prints what comes back until the server closes, for 5 seconds at most.
raw() {
  local socket
  exec {socket}<>"/dev/tcp/127.0.0.1/$1" || return 1
  timeout 5 cat >&"$socket" 2>/dev/null
  timeout 5 cat <&"$socket" | tr -d '\0'
  exec {socket}>&-
}

rss_kib() { awk '/^VmRSS/{print $2}' "/proc/$1/status"; }

# counts_refused NAME PROTOCOL REASON LEAST: by the metrics of the admin port.
counts_refused() {
  local metrics count
  metrics=$(curl -s -f -m 60 "http://127.0.0.1:$admin_port/metrics") || is "$1: there are metrics" yes no
  count=$(sed -n "s/^weir_refused_total{protocol=\"$2\",reason=\"$3\"} //p" <<<"$metrics")
  is "$1: counted as $3 ($count)" yes "$([ "${count:-0}" -ge "$4" ] && echo yes)"
}

still_answers() {
  is "$1: RESP still answers" PONG "$(redis ping)"
  is "$1: HTTP still answers" ok "$(curl -s -m 60 "$http/livez")"
}
