# What the server tests share: start a server on free ports, talk to it, compare, clean up.
#
# A test is called as `bash TEST PROGRAM SOURCE_DIR`, sources this file, and ends with `finish`. Every wait has a bound.
# Raw sockets are bash's own /dev/tcp: they can send any bytes. The other .bash files source this file themselves.
#
# Exit codes: 0 all passed, 1 something failed, 77 nothing failed but something could not be tested here, which ctest
# counts as skipped. ctest runs a *_long.sh alone: `alone` is set, and times are compared with the bounds of
# docs/guarantees.md. All other tests share the machine. They print times and do not compare them.
#
# No window ends by chance during a test: a limit that a test uses up is N/year, or the test starts at the beginning of
# a window (`not_at_the_end_of`, `period_from_now`).
[[ ! -v failures ]] || return 0  # it is sourced already
set -u
program=$1
source_dir=$(realpath "$2")
source "$(dirname "${BASH_SOURCE[0]}")/fetch.bash"
work=$(mktemp -d)
server_pids=()
failures=0
skipped=0
alone=''
[[ $0 != *_long.sh ]] || alone=yes

# descendants_of PID...: the ids of all processes below them.
descendants_of() {
  ps -e -o pid= -o ppid= | awk -v roots="$*" '
    {parent[$1] = $2}
    END {
      split(roots, all, " ")
      for (i in all) known[all[i]]
      for (more = 1; more;) {
        more = 0
        for (p in parent) if (!(p in known) && parent[p] in known) {known[p]; more = 1; print p}
      }
    }'
}

# Looks for the descendants first: when a server is killed, its children get another parent.
cleanup() {
  local pid
  for pid in "${server_pids[@]}" $(descendants_of "${server_pids[@]}" $$); do kill -KILL "$pid" 2>/dev/null; done
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

# took NAME TIME MOST: prints a time, which must be a number. Compares it with the bound only when the test runs alone.
took() {
  if [ -n "$alone" ]; then
    at_most "$@"
  else
    is "$1: $2 (alone at most $3)" yes "$([[ $2 =~ ^[0-9.]+$ ]] && echo yes)"
  fi
}

# pace NAME RATE LEAST: the same for a rate.
pace() {
  if [ -n "$alone" ]; then
    at_least "$@"
  else
    is "$1: $2 (alone at least $3)" yes "$([[ $2 =~ ^[0-9.]+$ ]] && echo yes)"
  fi
}

# skip NAME WHY: a part of the test cannot run here; the rest continues.
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
# seconds_since US: with three decimals, since a time from now_us.
seconds_since() { awk -v from="$1" -v to="$(now_us)" 'BEGIN{printf "%.3f", (to - from) / 1e6}'; }

# until_true SECONDS COMMAND...: calls the command until it succeeds; fails when the time is over. It waits a minute at
# least, because the machine may be busy. Most commands start processes, so the pauses grow, but not when times count.
until_true() {
  local end=$(($(now_us) + ($1 > 60 ? $1 : 60) * 1000000)) calls=0
  shift
  until "$@"; do
    [ "$(now_us)" -lt "$end" ] || return 1
    if ((calls++ < 5)) || [ -n "$alone" ]; then sleep 0.02; else sleep 0.1; fi
  done
}

# eventually NAME COMMAND...: the command succeeds in time. succeeds NAME COMMAND...: it succeeds at once.
eventually() {
  until_true 60 "${@:2}"
  is "$1" 0 $?
}
succeeds() {
  "${@:2}"
  is "$1" 0 $?
}

# weir WORDS...: runs `weir WORDS...`. Sets `said` to its output, and `code` to its exit code.
weir() {
  said=$(timeout 600 "$program" "$@" 2>&1)
  code=$?
}
# exits NAME CODE COMMAND..., prints NAME PART COMMAND...: the command sets `code` and `said`, as `weir` does. `exits`
# expects this exit code, `prints` an output that contains PART.
exits() {
  "${@:3}"
  is "$1" "$2" "$code"
}
prints() {
  "${@:3}"
  has "$1" "$2" "$said"
}

# not_at_the_end_of PERIOD SECONDS: waits for the next window of PERIOD seconds if this one has fewer SECONDS left.
not_at_the_end_of() {
  local left=$(($1 - $(date +%s) % $1))
  [ "$left" -ge "$2" ] || sleep "$left"
}
# period_from_now LEAST: a period of at least LEAST seconds. Nine tenths of its current window are still to come.
period_from_now() {
  local n now
  now=$(date +%s)
  for ((n = $1; now % n > n / 10; ++n)); do :; done
  echo "$n"
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }
# has_ended PID: also if its parent has not waited for it yet.
has_ended() { [ -n "$1" ] && { is_gone "$1" || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }; }
is_announced() { grep -q "^ready" "$1" 2>/dev/null; }

# start_server [ARGUMENTS]: sets pid, http (an URL), http_port, grpc_port, resp_port and admin_port.
# How much load a server sheds depends on the machine. So it sheds none where other tests run beside it, unless the
# arguments have --shed-after.
start_server() {
  local n=${#server_pids[@]} shed=(--shed-after 0) listener address
  [[ -z $alone && "$*" != *--shed-after* ]] || shed=()
  "$program" serve --http 127.0.0.1:0 --grpc 127.0.0.1:0 --resp 127.0.0.1:0 --admin 127.0.0.1:0 "${shed[@]}" \
    "$@" >"$work/out$n" 2>"$work/err$n" &
  started
  is_up_or_gone() { is_announced "$work/out$n" || is_gone "$pid"; }
  if ! until_true 60 is_up_or_gone || ! is_announced "$work/out$n"; then
    echo "FAIL  the server did not start"
    cat "$work/out$n" "$work/err$n"
    exit 1
  fi
  http='' grpc_port='' resp_port='' admin_port=''
  while read -r listener address _; do
    case $listener in
      http) http=$address ;;
      grpc | resp | admin) printf -v "${listener}_port" %s "${address##*:}" ;;
    esac
  done <"$work/out$n"
  http_port=${http##*:}
}

# start_with_descriptors COUNT [ARGUMENTS]: a server that may open COUNT files.
start_with_descriptors() {
  local real=$program
  program=$work/limited
  printf '#!/bin/bash\nulimit -n %s\nexec "%s" "$@"\n' "$1" "$real" >"$program"
  chmod +x "$program"
  start_server "${@:2}"
  program=$real
}

# started: sets pid to the process that was just started with `&`; cleanup ends it.
started() {
  pid=$!
  server_pids+=("$pid")
}

# kill_server: as a crash does. stop_server: as a service manager does; its exit code is the server's.
kill_server() { kill -KILL "$pid"; wait "$pid" 2>/dev/null; }
stop_server() { kill "-${1:-TERM}" "$pid"; wait "$pid"; }
# ends_well NAME [SIGNAL]: it stops, with exit code 0.
ends_well() {
  stop_server "${2:-TERM}"
  is "$1" 0 $?
}

# refuses CODE PART WORDS...: `weir WORDS...` ends with this exit code and prints one line that contains PART.
refuses() {
  local code said
  exits "weir ${*:3}: exit code" "$1" weir "${@:3}"
  has "weir ${*:3}: says why" "$2" "$said"
  is "weir ${*:3}: in one line" 1 "$(wc -l <<<"$said")"
}
# serves_not PART FLAGS...: with these flags, the server does not start, and prints one line that contains PART.
serves_not() { refuses 1 "$1" serve --http :0 --grpc off --resp off --admin off "${@:2}"; }

# post BODY [CURL ARGUMENTS]: the whole answer, header and body, without carriage returns.
post() { curl -s -i -m 60 "$http/v1/check" -d "$1" "${@:2}" | tr -d '\r'; }

# code_of CURL ARGUMENTS: the status of an answer.
code_of() { curl -s -m 60 -o /dev/null -w '%{http_code}' "$@"; }

# get PATH: the body of an answer of the admin API.
get() { curl -s -m 60 "http://127.0.0.1:$admin_port$1"; }
# metrics [CURL ARGUMENTS]: the page. metric SERIES: its value.
metrics() { curl -s -m 60 "http://127.0.0.1:$admin_port/metrics" "$@"; }
metric() { metrics | awk -v name="$1" 'index($0, name " ") == 1 {print $NF}'; }
metric_is() { [ "$(metric "$1")" == "$2" ]; }

# number NAME JSON: a number, without its decimals, in the output of `weir bench --json`.
number() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" <<<"$2"; }

# member PATH JSON: a value in a JSON text. PATH is like rules.0.name.
member() {
  "$python" -c '
import json, sys
at = json.load(sys.stdin)
for part in sys.argv[1].split("."):
    at = at[int(part)] if isinstance(at, list) else at[part]
print(json.dumps(at) if not isinstance(at, str) else at)' "$1" <<<"$2"
}

# redis ARGUMENTS: the reply on one line.
redis() {
  local reply
  reply=$(timeout 600 redis-cli -p "$resp_port" "$@" 2>&1)
  reply=${reply//$'\n'/ }
  printf '%s\n' "${reply%"${reply##*[! ]}"}"
}

# allowed_of_ten KEY TIMES: how many of TIMES checks against 10 a day are allowed, over RESP.
allowed_of_ten() {
  local i
  for ((i = 0; i < $2; ++i)); do echo "CL.THROTTLE $1 9 10 86400"; done |
    timeout 600 redis-cli -p "$resp_port" | sed -n '1~5p' | grep -c '^0$'
}

# raw PORT [SECONDS]: sends its input to the port. Prints the answer until the server closes, for 5 seconds at most.
raw() {
  local socket
  exec {socket}<>"/dev/tcp/127.0.0.1/$1" || return 1
  timeout 5 cat >&"$socket" 2>/dev/null
  timeout "${2:-5}" cat <&"$socket" | tr -d '\0'
  exec {socket}>&-
}

# close_all SOCKET...: by their numbers.
close_all() {
  local socket
  for socket; do exec {socket}>&-; done
}

rss_kib() { awk '/^VmRSS/{print $2}' "/proc/$1/status"; }

# counts_refused NAME PROTOCOL REASON LEAST: in weir_refused_total.
counts_refused() {
  at_least "$1: counted as $3" "$(metric "weir_refused_total{protocol=\"$2\",reason=\"$3\"}")" "$4"
}

still_answers() {
  is "$1: RESP still answers" PONG "$(redis ping)"
  is "$1: HTTP still answers" ok "$(curl -s -m 60 "$http/livez")"
}
