# Helpers for tests of plans: requests of a user, and queries about users. Limits are per year, so no window ends during
# a test.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
plan() { timeout 600 "$program" plan "$@" --admin "127.0.0.1:$admin_port" 2>&1; }
ask() { code_of "$http/v1/check" -d "{\"user\":\"$1\"}"; }
# passed USER N: how many of N pass.
passed() {
  local n=0 i
  for ((i = 0; i < $2; i++)); do [ "$(ask "$1")" != 200 ] || n=$((n + 1)); done
  echo $n
}
# comes_in SECONDS NAME COMMAND...: waits until the command succeeds. The bound is for a machine that is not busy.
comes_in() {
  local begun
  begun=$(now_us)
  until_true 30 "${@:3}" || is "$2" "${*:3}" "$(plan status)"
  took "$2: seconds" "$(seconds_since "$begun")" "$1"
}
# known USER: sends a check of cost 0, and waits until the database has answered. Until then the default plan applies,
# and its charges are counted separately.
known() {
  curl -s -m 60 -o /dev/null "$http/v1/check" -d "{\"user\":\"$1\",\"cost\":0}"
  is_answered() { [ "$(metric weir_plans_pending)" == 0 ] && [ "$(metric weir_plans_subjects)" -ge 1 ]; }
  until_true 60 is_answered || is "the plan of $1 is known" yes no
}
# away NAME: waits until the server knows that the database is unavailable.
away() { eventually "$1: the server notices" metric_is weir_plans_up 0; }
