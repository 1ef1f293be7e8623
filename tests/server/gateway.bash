# Helpers for tests of gateways: the application behind the gateway, the shipped configs with the ports of this run, the
# gateway itself, and what a client of it sees.
#
# The shipped configs use 8080 (Weir's HTTP), 8081 (its gRPC), 3000 (the application) and 8000 and up (the gateway).
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

# free_port NAME...: sets each to a free port, below those that the kernel assigns.
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

# start_gateway PORT COMMAND...: sets gateway_pid; waits until the port is open. If the gateway has ended by then,
# another process has the port.
start_gateway() {
  local n=${#server_pids[@]}
  "${@:2}" >"$work/err_gateway$n" 2>&1 </dev/null &
  gateway_pid=$!
  server_pids+=("$gateway_pid")
  until_true 20 is_open "$1" && ! has_ended "$gateway_pid" ||
    { echo "FAIL  the gateway did not start"; cat "$work/err_gateway$n"; exit 1; }
}

# connections_to PORT: how many are open.
connections_to() {
  awk -v port=":$(printf '%04X' "$1")" '$4 == "01" && substr($3, length($3) - 4) == port' /proc/net/tcp | wc -l
}

stop() { kill -TERM "$1" && wait "$1" 2>/dev/null; }

# via PORT PATH [CURL ARGUMENTS]: the whole answer of the gateway, header names in small letters.
via() { curl -s -i -m 60 "http://127.0.0.1:$1$2" "${@:3}" | tr -d '\r' | sed -E 's/^([A-Za-z][A-Za-z-]*): /\L\1: /'; }

# statuses COUNT PORT PATH [CURL ARGUMENTS]: of COUNT requests, one after the other, on one line.
statuses() { for _ in $(seq "$1"); do code_of "http://127.0.0.1:$2$3" "${@:4}"; echo; done | paste -sd' '; }

# is_stopped PID: each of its threads; a signal takes its time where processors are busy.
is_stopped() { ! grep -L '^State:.T' /proc/"$1"/task/*/status | grep -q .; }

# while_frozen PORT PATH: the status of a request while Weir accepts connections and does not answer.
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
  has "$1: the body has the message" "Rate limit exceeded" "$2"
  is "$1: the application saw nothing" "" "$(grep -o '^app ' <<<"$2")"
}

# passed NAME ANSWER LIMIT REMAINING: a request that was served, and its headers say what is left.
passed() {
  is "$1: status" 200 "$(sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' <<<"$2")"
  is "$1: X-RateLimit-Limit" "$3" "$(header x-ratelimit-limit "$2")"
  is "$1: X-RateLimit-Remaining" "$4" "$(header x-ratelimit-remaining "$2")"
  has "$1: RateLimit" ";r=$4;t=" "$(header ratelimit "$2")"
  has "$1: RateLimit-Policy" ";q=$3;w=" "$(header ratelimit-policy "$2")"
  is "$1: no Retry-After" "" "$(header retry-after "$2")"
  is "$1: the application's own headers" yes "$(header x-app "$2")"
}

# limits_clients NAME PORT ADDRESS OTHER: five requests of a client to /a pass, and it sees what is left. OTHER is the
# address of another client. No client can claim another address or path.
limits_clients() {
  local from=(--interface "$3")
  passed "$1: the first" "$(via "$2" /a "${from[@]}")" 5 4
  is "$1: five pass, then 429 and never 500" "200 200 200 200 429 429 429" "$(statuses 7 "$2" /a "${from[@]}")"
  limited "$1: denied" "$(via "$2" /a "${from[@]}")" 5
  is "$1: another address is another client" "200 200 200 200 200 429" "$(statuses 6 "$2" /a --interface "$4")"
  is "$1: no client can claim another address" 429 "$(statuses 1 "$2" /a "${from[@]}" -H 'X-Forwarded-For: 192.0.2.7')"
  is "$1: nor another path" 429 \
    "$(statuses 1 "$2" /a "${from[@]}" -H 'X-Forwarded-Uri: /health' -H 'X-Forwarded-Method: OPTIONS')"
  is "$1: the query is no part of the path" 429 "$(statuses 1 "$2" '/a?b=c' "${from[@]}")"
}

# limits_posts NAME PORT ADDRESS: three POSTs of a client to /api/login pass, and their bodies reach the application.
limits_posts() {
  local path='/api/login?next=%2F' from=(--interface "$3") answer
  head -c 300000 /dev/zero | tr '\0' x >"$work/body.txt"
  answer=$(via "$2" "$path" "${from[@]}" -d user=me)
  passed "$1: a POST" "$answer" 3 2
  has "$1: its body reaches the application" "app POST $path 7" "$answer"
  has "$1: a large body, too" "app POST $path 300000" \
    "$(via "$2" "$path" "${from[@]}" --data-binary "@$work/body.txt")"
  has "$1: and one in chunks" "app POST $path 300000" \
    "$(via "$2" "$path" "${from[@]}" -H 'Transfer-Encoding: chunked' --data-binary "@$work/body.txt")"
  limited "$1: the fourth POST" "$(via "$2" "$path" "${from[@]}" -d user=me)" 3
}

# stops_long_urls NAME PORT ADDRESS LENGTH...: a URL never passes because it is long.
stops_long_urls() {
  local length answer
  for length in "${@:4}"; do
    answer=$(statuses 1 "$2" "/$(printf 'x%.0s' $(seq "$length"))" --interface "$3")
    is "$1: a URL of $length bytes does not pass" yes "$([[ "$answer" =~ ^4 ]] && echo yes || echo "no: $answer")"
  done
}

# nginx_config LEVEL: a config with the standard input in its `http` block. All files are in the folder of the test.
nginx_config() {
  cat <<CONF
daemon off;
$([ "$EUID" == 0 ] && echo 'user root;')
pid $work/nginx.pid;
error_log $work/err_nginx.log $1;
events { }
http {
  access_log off;
  client_body_temp_path $work/body;
  proxy_temp_path $work/proxy;
  fastcgi_temp_path $work/fastcgi;
  uwsgi_temp_path $work/uwsgi;
  scgi_temp_path $work/scgi;
$(cat)
}
CONF
}
