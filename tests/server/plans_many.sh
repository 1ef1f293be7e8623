# 100,000 subjects change their plan in one statement while the server handles requests. No loop waits for it, and in
# the end all are on the new plan. plans_many_long.sh does the same alone on the machine, with tighter bounds.
source "$(dirname "$0")/plans.bash"
command -v sqlite3 >/dev/null || { echo "this test needs sqlite3; ./dev setup brings it"; exit 1; }

db=$work/plans.db
cat >"$work/weir.yaml" <<'YAML'
plans:
  source: sqlite:plans.db
  default: free
  tiers: {free: 1000000/hour, pro: 2000000/hour}
  subjects: 200000
rules:
  - {name: plan, per: user, limit: plan, algorithm: fixed_window}
YAML
sqlite3 "$db" "CREATE TABLE weir_plans(subject TEXT PRIMARY KEY, plan TEXT);
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
  INSERT INTO weir_plans SELECT printf('user:%011d', i), 'free' FROM n" || exit 1
start_server --config "$work/weir.yaml" --keys 200000 --threads 1

all_known() { [ "$(metric weir_plans_subjects)" == 100000 ]; }
until_true 60 all_known || is "all are known before anybody asks" 100000 "$(metric weir_plans_subjects)"

# load FILE: checks of all subjects, at a rate below the maximum.
load() {
  timeout 600 "$program" bench --json --resp "127.0.0.1:$resp_port" --connections 8 --pipeline 1 --rate 2000 \
    --keys 100000 --seconds 5 --command 'WEIR.CHECK user {n}' >"$1" 2>"$work/load_err" ||
    is "the load: $(cat "$work/load_err")" 0 1
}
load "$work/quiet"
load "$work/busy" &
loader=$!
sleep 1
begun=$(now_us)
sqlite3 -cmd '.timeout 5000' "$db" "UPDATE weir_plans SET plan = 'pro'"
all_changed() { [ "$(metric weir_plans_changes_total)" == 100000 ]; }
until_true 60 all_changed || is "all have changed" 100000 "$(metric weir_plans_changes_total)"
echo "      after $(seconds_since "$begun") s all are on the new plan"
wait "$loader"
cat "$work/quiet" "$work/busy"
took "p99 beside it, in ns" "$(number p99_ns "$(cat "$work/busy")")" 10000000
is "no other subject was looked up" 100000 "$(metric weir_plans_subjects)"
has "the first" "is on pro" "$("$program" plan show user:00000000000 --admin "127.0.0.1:$admin_port")"
has "the last" "is on pro" "$("$program" plan show user:00000099999 --admin "127.0.0.1:$admin_port")"
finish
