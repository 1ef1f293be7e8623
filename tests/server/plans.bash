# What the tests of plans share: asking a server as one of its users, and asking it about them.
#
# Sourced after lib.bash. Their limits are a year's, so that no window ends while they run.
plan() { timeout 600 "$program" plan "$@" --admin "127.0.0.1:$admin_port" 2>&1; }
ask() { curl -s -m 60 -o /dev/null -w '%{http_code}' "$http/v1/check" -d "{\"user\":\"$1\"}"; }
# passed USER N: how many of N pass.
passed() {
  local n=0 i
  for ((i = 0; i < $2; i++)); do [ "$(ask "$1")" != 200 ] || n=$((n + 1)); done
  echo $n
}
# known USER: asks for it without spending, and waits until the database has answered. Before that the default plan
# holds for it, and what it spends is counted apart.
known() {
  curl -s -m 60 -o /dev/null "$http/v1/check" -d "{\"user\":\"$1\",\"cost\":0}"
  is_answered() { [ "$(metric weir_plans_pending)" == 0 ] && [ "$(metric weir_plans_subjects)" -ge 1 ]; }
  until_true 60 is_answered || is "the plan of $1 is known" yes no
}
metric() { curl -s -m 60 "http://127.0.0.1:$admin_port/metrics" | sed -n "s/^$1 //p"; }
metric_is() { [ "$(metric "$1")" == "$2" ]; }
