# Plans from PostgreSQL, as users see them. The database reports changes itself. The test kills and freezes it, makes it
# read-only, takes all its connections and removes its tables. The last known plans stay in effect, and the server soon
# queries it again.
source "$(dirname "$0")/plans.bash"
source "$(dirname "$0")/postgres.bash"

pg_start
config() {
  cat <<YAML
plans:
  source: $pg_url
$1
  default: free
  tiers: {free: 3/year, pro: 10/year, gold: 20/year}
rules:
  - {name: plan, per: user, limit: plan, algorithm: fixed_window}
YAML
}
config "" >"$work/weir.yaml"
start_server --config "$work/weir.yaml"

# The limit of a user, without a charge.
limit() { curl -s -m 60 "$http/v1/check" -d "{\"user\":\"$1\",\"cost\":0}" | grep -o '"limit":[0-9]*' | tail -1; }
limit_is() { [ "$(limit "$1")" == "\"limit\":$2" ]; }
# comes NAME USER LIMIT [SECONDS]
comes() { comes_in "${4:-1}" "$1" limit_is "$2" "$3"; }

echo "# plans"
known 42
is "a user without a plan has the default" 3 "$(passed 42 5)"
has "set by the command" "user:42 is on pro: 10/year" "$(plan set user:42 pro)"
is "what was used stays used" 7 "$(passed 42 20)"
pg "UPDATE weir_plans SET plan = 'gold' WHERE subject = 'user:42'"
comes "an upgrade in the database" 42 20
is "on the live key" 10 "$(passed 42 20)"
pg "INSERT INTO weir_overrides(subject, limits, until) VALUES ('user:42', '25/year', now() + interval '1 day')"
comes "limits of its own" 42 25
pg "UPDATE weir_overrides SET until = now() - interval '1 day'"
comes "that have ended" 42 20
has "the list" "user:42  gold" "$(plan list)"

echo "# invalid rows"
refused=$(metric weir_plans_refused_total)
while read -r what row; do
  pg "$row"
  refused=$((refused + 1))
  until_true 20 metric_is weir_plans_refused_total "$refused" ||
    is "$what: refused" "$refused" "$(metric weir_plans_refused_total)"
  is "$what: its subject keeps what it had" '"limit":20' "$(limit 42)"
  has "$what: named" "invalid row: user:42" "$(plan status)"
  pg "UPDATE weir_plans SET plan = 'gold' WHERE subject = 'user:42'; DELETE FROM weir_overrides"
  is_sound() { ! plan status | grep -q "invalid row"; }
  until_true 20 is_sound || is "$what: mended" yes no
done <<'ROWS'
NULL UPDATE weir_plans SET plan = NULL WHERE subject = 'user:42'
blank UPDATE weir_plans SET plan = ' ' WHERE subject = 'user:42'
unknown UPDATE weir_plans SET plan = 'platin' WHERE subject = 'user:42'
negative INSERT INTO weir_overrides(subject, limits) VALUES ('user:42', '-5/minute')
absurd INSERT INTO weir_overrides(subject, limits) VALUES ('user:42', '9223372036854775808/minute')
ROWS

echo "# the database is unavailable"
# back NAME: two seconds after it is available again, on a machine that is not busy.
back() {
  pg "UPDATE weir_plans SET plan = 'pro' WHERE subject = 'user:42'"
  comes "$1: back, and fresh" 42 10 2
  until_true 30 metric_is weir_plans_up 1 || is "$1: up" yes no
  pg "UPDATE weir_plans SET plan = 'gold' WHERE subject = 'user:42'"
  comes "$1: changes are told again" 42 20
}
holds() {
  is "$1: the last known plan applies" '"limit":20' "$(limit 42)"
  is "$1: a new user has the default" 3 "$(passed "$2" 5)"
}
pg_stop QUIT
away "killed"
holds "killed" 60
at_least "killed: its age" "$(metric weir_plans_age_seconds)" 0.01
pg_start
back "killed"
pg_signal STOP
away "frozen"
begun=$(now_us)
holds "frozen" 61
took "frozen: seconds for six checks" "$(seconds_since "$begun")" 1
pg_signal CONT
back "frozen"
pg "ALTER TABLE weir_plans RENAME TO elsewhere"
pg "SELECT pg_notify('weir_plans', '')" >/dev/null
away "without its table"
holds "without its table" 62
pg "DROP TABLE IF EXISTS weir_plans; ALTER TABLE elsewhere RENAME TO weir_plans"
back "without its table"
# Others take every connection that there is, and any that comes free, until ours is cut and gets none.
touch "$work/hold"
for _ in $(seq 25); do
  while [ -e "$work/hold" ]; do
    in_pg_work psql -h "$pg_work" -U weir -d postgres -qAtXc "SELECT pg_sleep(600)" >/dev/null 2>&1
    sleep 0.05
  done &
  server_pids+=($!)
done
backends() {
  pgrep -a -P "$(head -1 "$pg_work/data/postmaster.pid")" | awk -v what="weir postgres.*$1" '$0 ~ what {print $1}'
}
cut_ours() {
  kill -TERM $(backends idle) 2>/dev/null
  sleep 0.3
  metric_is weir_plans_up 0 && [[ $(plan status) == *connections* ]]
}
until_true 30 cut_ours || is "out of connections: noticed" yes no
holds "out of connections" 63
has "out of connections: the status says so" "connections" "$(plan status)"
rm "$work/hold"
all_gone() {
  kill -TERM $(backends SELECT) 2>/dev/null
  pg "SELECT 1" >/dev/null 2>&1 && [ -z "$(backends SELECT)" ]
}
until_true 20 all_gone || is "out of connections: over" yes no
back "out of connections"
pg_stop INT
pg_start default_transaction_read_only=on
until_true 30 metric_is weir_plans_up 1 || is "read-only: it can be asked" yes "$(plan status)"
is "read-only: plans are known" '"limit":20' "$(limit 42)"
has "read-only: nothing can be written, and it says why" "read-only" "$(plan set user:42 pro)"
pg_stop INT
pg_start
back "read-only"

echo "# tables of one's own"
pg "CREATE TABLE users(user_id TEXT PRIMARY KEY, plan TEXT); INSERT INTO users VALUES ('42', 'pro')"
# As docs/configuration.md shows it.
pg "CREATE FUNCTION weir_notify() RETURNS trigger LANGUAGE plpgsql AS \$\$
    BEGIN PERFORM pg_notify('weir_plans', 'user:' || COALESCE(NEW.user_id, OLD.user_id)); RETURN NULL; END \$\$;
  CREATE TRIGGER weir_notify AFTER INSERT OR UPDATE OR DELETE ON users FOR EACH ROW EXECUTE FUNCTION weir_notify()"
config '  query: SELECT plan FROM users WHERE user_id = $1' >"$work/weir.yaml"
comes "another source" 42 10 5
pg "UPDATE users SET plan = 'gold'"
comes "a change that a trigger tells" 42 20
pg "DELETE FROM users"
comes "a row that is gone" 42 3
finish
