# What the tests of gateways share, on top of lib.bash and fetch.bash: the application behind the gateway, the shipped
# configs with this run's ports in place of theirs, the gateway itself, and what a client of it sees.
#
# The shipped configs say 8080 (weir's HTTP), 8081 (its gRPC), 3000 (the application) and 8000 and up (the gateway).
source "$(dirname "${BASH_SOURCE[0]}")/fetch.bash"
source_dir=$(realpath "$2")

# free_port NAME...: sets each to a port that nobody has; below those that the kernel gives to others.
free_port() {
  local name from=$((RANDOM % 12000 + 20000))
  for name in "$@"; do
    local -n port=$name
    while is_open "$from"; do from=$((from + 1)); done
    port=$((from++))
  done
}

is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# rules_of EXAMPLE: the path of a copy of its rules that count by the year, where the shipped ones count by the minute:
# a minute ends while the test runs, and then a sixth request of five passes.
rules_of() {
  sed 's#/minute#/year#' "$source_dir/examples/$1/weir.yaml" >"$work/$1-rules.yaml"
  echo "$work/$1-rules.yaml"
}

# start_app [SCRIPT VARIABLE]: the application behind the gateway, tests/server/app.py or another script of that folder,
# which prints its port; sets app_port or the variable to it.
start_app() {
  local script=${1:-app.py} name
  local -n app=${2:-app_port}
  name=$(basename "$script" .py)
  "$python" "$source_dir/tests/server/$script" >"$work/$name" 2>"$work/err_$name" &
  server_pids+=($!)
  until_true 20 test -s "$work/$name" || { echo "FAIL  the application did not start"; exit 1; }
  app=$(cat "$work/$name")
}

# place EXAMPLE PORT...: a copy of the folder of examples/ at $work/EXAMPLE, its ports 8000, 8001, ... replaced by those
# given, and those of weir and the application by this run's. Everything else stays as it is shipped.
place() {
  local example=$1 expressions=() from=8000 port
  shift
  for port in "$@"; do expressions+=(-e "s/\b$from\b/$port/g") && from=$((from + 1)); done
  rm -rf "${work:?}/$example"
  cp -r "$source_dir/examples/$example" "$work/$example"
  find "$work/$example" -type f ! -name weir.yaml -exec sed -i -e "s/\b8080\b/$http_port/g" \
    -e "s/\b8081\b/${grpc_port:-1}/g" -e "s/\b3000\b/$app_port/g" "${expressions[@]}" {} +
}

# start_gateway PORT COMMAND...: sets gateway_pid; waits until the port is open.
start_gateway() {
  local port=$1 n=${#server_pids[@]}
  shift
  "$@" >"$work/err_gateway$n" 2>&1 </dev/null &
  gateway_pid=$!
  server_pids+=("$gateway_pid")
  until_true 20 is_open "$port" || { echo "FAIL  the gateway did not start"; cat "$work/err_gateway$n"; exit 1; }
}

# connections_to PORT: how many are open.
connections_to() {
  awk -v port=":$(printf '%04X' "$1")" '$4 == "01" && substr($3, length($3) - 4) == port' /proc/net/tcp | wc -l
}

stop() { kill -TERM "$1" && wait "$1" 2>/dev/null; }

# via PORT PATH [CURL ARGUMENTS]: the whole answer of the gateway, header names in small letters.
via() {
  local port=$1 path=$2
  shift 2
  curl -s -i -m 60 "http://127.0.0.1:$port$path" "$@" | tr -d '\r' | sed -E 's/^([A-Za-z][A-Za-z-]*): /\L\1: /'
}

# statuses COUNT PORT PATH [CURL ARGUMENTS]: of COUNT requests, one after the other, on one line.
statuses() {
  local count=$1 port=$2 path=$3
  shift 3
  for _ in $(seq "$count"); do
    curl -s -o /dev/null -m 60 -w '%{http_code}\n' "http://127.0.0.1:$port$path" "$@"
  done | paste -sd' '
}

# is_stopped PID: each of its threads; a signal takes its time where processors are busy.
is_stopped() { ! grep -L '^State:.T' /proc/"$1"/task/*/status | grep -q .; }

# while_frozen PORT PATH: the status of a request while weir accepts connections and answers nobody.
while_frozen() {
  kill -STOP "$pid"
  until_true 10 is_stopped "$pid"
  statuses 1 "$1" "$2" # which has a minute; the gateway gives weir up far sooner
  kill -CONT "$pid"
}

# header NAME ANSWER: its value, without the body's lines.
header() { sed -n -e '/^$/q' -e "s/^$1: //p" <<<"$2"; }

# limited NAME ANSWER LIMIT: a denial as a client should see it, whatever is between.
limited() {
  local retry
  retry=$(header retry-after "$2")
  is "$1: status" 429 "$(sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' <<<"$2")"
  is "$1: Retry-After is a number of seconds" yes "$([[ "$retry" =~ ^[1-9][0-9]*$ ]] && echo yes || echo "no: $retry")"
  is "$1: X-RateLimit-Limit" "$3" "$(header x-ratelimit-limit "$2")"
  is "$1: X-RateLimit-Remaining" 0 "$(header x-ratelimit-remaining "$2")"
  has "$1: RateLimit" ';r=0;t=' "$(header ratelimit "$2")"
  has "$1: RateLimit-Policy" ";q=$3;w=" "$(header ratelimit-policy "$2")"
  has "$1: the body tells it" "Rate limit exceeded" "$2"
  is "$1: the application saw nothing" "" "$(grep -o '^app ' <<<"$2")"
}

# passed NAME ANSWER LIMIT REMAINING: a request that was served, with what is left told to the client.
passed() {
  is "$1: status" 200 "$(sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' <<<"$2")"
  is "$1: X-RateLimit-Limit" "$3" "$(header x-ratelimit-limit "$2")"
  is "$1: X-RateLimit-Remaining" "$4" "$(header x-ratelimit-remaining "$2")"
  has "$1: RateLimit" ";r=$4;t=" "$(header ratelimit "$2")"
  has "$1: RateLimit-Policy" ";q=$3;w=" "$(header ratelimit-policy "$2")"
  is "$1: no Retry-After" "" "$(header retry-after "$2")"
  is "$1: the application's own headers" yes "$(header x-app "$2")"
}
