# What the tests of plans share: asking a server as one of its users, and asking it about them.
#
# Sourced after lib.bash. Their limits are a year's, so that no window ends while they run.
plan() { timeout 20 "$program" plan "$@" --admin "127.0.0.1:$admin_port" 2>&1; }
ask() { curl -s -m 20 -o /dev/null -w '%{http_code}' "$http/v1/check" -d "{\"user\":\"$1\"}"; }
# passed USER N: how many of N pass.
passed() {
  local n=0 i
  for ((i = 0; i < $2; i++)); do [ "$(ask "$1")" != 200 ] || n=$((n + 1)); done
  echo $n
}
metric() { curl -s -m 20 "http://127.0.0.1:$admin_port/metrics" | sed -n "s/^$1 //p"; }
metric_is() { [ "$(metric "$1")" == "$2" ]; }
