# Plans from SQLite, as users see them: upgrades, limits of their own, custom tables, and a database that is locked,
# damaged, read-only or missing. The last known plans stay in effect, and an invalid row is refused alone.
source "$(dirname "$0")/plans.bash"
command -v sqlite3 >/dev/null || { echo "this test needs sqlite3; ./dev setup brings it"; exit 1; }

db=$work/plans.db
config() {
  cat <<YAML
plans:
  source: sqlite:plans.db
  default: free
  tiers: {free: 3/year, pro: [1000/second, 10/year], enterprise: unlimited, ${1:-gold: 20/year}}
rules:
  - {name: plan, per: user, limit: plan, algorithm: fixed_window}
YAML
}
config >"$work/weir.yaml"
start_server --config "$work/weir.yaml"

sql() { sqlite3 -cmd '.timeout 5000' "$db" "$1"; }
remaining() {
  curl -s -m 60 "$http/v1/check" -d "{\"user\":\"$1\",\"cost\":0}" | grep -o '"remaining":[0-9]*' | tail -1
}
shows() { plan show "user:$1" | grep -qF -- "$2"; }
# comes NAME USER TEXT
comes() { comes_in 1 "$1" shows "$2" "$3"; }

echo "# plans"
known 42
is "a user without a plan has the default" 3 "$(passed 42 5)"
has "its plan is shown" "user:42 is on free, the default: 3/year" "$(plan show user:42)"
has "set by the command" "user:42 is on pro: 1000/second, 10/year" "$(plan set user:42 pro --reason upgrade)"
is "what was used stays used" 7 "$(passed 42 20)"
has "the log has the change" 'plan changed subject=user:42 plan=pro' "$(cat "$work"/err0)"
sql "UPDATE weir_plans SET plan = 'gold' WHERE subject = 'user:42'"
comes "an upgrade in the database" 42 "is on gold: 20/year"
is "on the live key" 10 "$(passed 42 20)"
has "limits of its own" "user:42 is on gold: 25/year" "$(plan override user:42 25/year)"
is "are in effect at once" 5 "$(passed 42 20)"
has "and end by hand" "user:42 is on gold: 20/year" "$(plan remove user:42 --override)"
is "a downgrade frees no permits" "429" "$(ask 42)"
plan override user:43 5/year --until "$(date -u -d '+10 seconds' +%Y-%m-%dT%H:%M:%SZ)" >/dev/null
has "limits for a time" "is on free, the default: 5/year" "$(plan show user:43)"
comes_back() { shows 43 "the default: 3/year"; }
until_true 40 comes_back || is "they end by themselves" yes no
has "the list" "user:42  gold" "$(plan list)"
has "the status" "free (default)  3/year" "$(plan status)"
has "an unknown plan is refused" "unknown plan 'platin'" "$(plan set user:42 platin)"
has "so are invalid limits" "-5/year" "$(plan override user:42 -5/year)"
has "and an invalid subject" "unknown subject '42'; write user:42" "$(plan set 42 pro)"
has "the default again" "user:42 is on free" "$(plan remove user:42)"
json=$(curl -s -m 60 "http://127.0.0.1:$admin_port/admin/v1/plans/set" -H 'Content-Type: application/json' \
  -d '{"subject":"tenant:acme","plan":"enterprise"}')
has "the admin API does the same" '"in_force":{"plan":"enterprise","default":false,"limits":"unlimited"}' "$json"

echo "# invalid rows"
sql "INSERT INTO weir_plans(subject, plan) VALUES ('user:50', 'gold'), ('user:51', 'pro')"
comes "a sound row" 50 "is on gold"
while read -r what row; do
  sql "$row"
  comes "$what: refused, and named" 50 "invalid row"
  has "$what: its subject keeps what it had" "user:50 is on gold: 20/year" "$(plan show user:50)"
  has "$what: no other subject changes" "user:51 is on pro" "$(plan show user:51)"
  sql "UPDATE weir_plans SET plan = 'gold' WHERE subject = 'user:50'; DELETE FROM weir_overrides"
  is_sound() { ! shows 50 "invalid row"; }
  until_true 20 is_sound || is "$what: mended" yes no
done <<'ROWS'
NULL UPDATE weir_plans SET plan = NULL WHERE subject = 'user:50'
blank UPDATE weir_plans SET plan = '' WHERE subject = 'user:50'
unknown UPDATE weir_plans SET plan = 'platin' WHERE subject = 'user:50'
number UPDATE weir_plans SET plan = 9223372036854775807 WHERE subject = 'user:50'
bytes UPDATE weir_plans SET plan = x'00ff0a' WHERE subject = 'user:50'
negative INSERT INTO weir_overrides(subject, limits) VALUES ('user:50', '-5/minute')
zero INSERT INTO weir_overrides(subject, limits) VALUES ('user:50', '0/minute')
absurd INSERT INTO weir_overrides(subject, limits) VALUES ('user:50', '9223372036854775808/minute')
null INSERT INTO weir_overrides(subject, limits) VALUES ('user:50', NULL)
until INSERT INTO weir_overrides(subject, limits, until) VALUES ('user:50', '5/minute', 'some day')
ROWS
has "the log names it" "subject=user:50" "$(cat "$work"/err0)"
is "it is counted" 10 "$(metric weir_plans_refused_total)"

echo "# the database is unavailable"
# back NAME: within two seconds, on a machine that is not busy.
back() {
  local begun
  begun=$(now_us)
  until_true 30 metric_is weir_plans_up 1 || is "$1: back" yes no
  sql "UPDATE weir_plans SET plan = 'enterprise' WHERE subject = 'user:51'"
  until_true 20 shows 51 "is on enterprise" || is "$1: fresh" yes no
  took "$1: seconds until it is fresh" "$(seconds_since "$begun")" 2
  sql "UPDATE weir_plans SET plan = 'pro' WHERE subject = 'user:51'"
  until_true 20 shows 51 "is on pro" || is "$1: fresh again" yes no
}
holds() { is "$1: the last known plan applies" '"remaining":20' "$(remaining 50)"; }
holds "at first"
mkfifo "$work/hold"
sqlite3 "$db" <"$work/hold" &
holder=$!
server_pids+=("$holder")
exec {hold}>"$work/hold"
echo 'PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE weir_plans SET plan = plan;' >&$hold
away "locked"
holds "locked"
is "locked: a new subject has the default" 3 "$(passed 60 5)"
at_least "locked: its age" "$(metric weir_plans_age_seconds)" 0.1
has "locked: the status says so" "unavailable" "$(plan status)"
has "locked: nothing can be written, and it says why" "lock" "$(plan set user:60 pro)"
exec {hold}>&-
wait "$holder" 2>/dev/null
back "locked"
mv "$db" "$work/aside"
away "gone"
holds "gone"
mv "$work/aside" "$db"
back "gone"
cp "$db" "$work/aside"
head -c 20000 /dev/urandom >"$work/noise" && mv "$work/noise" "$db"
away "damaged"
holds "damaged"
mv "$work/aside" "$db"
back "damaged"
sql "ALTER TABLE weir_plans RENAME TO elsewhere"
away "the table is gone"
holds "the table is gone"
sql "DROP TABLE IF EXISTS weir_plans; ALTER TABLE elsewhere RENAME TO weir_plans"
back "the table is gone"
sql "DELETE FROM weir_plans"
comes "an empty table is the default for all" 50 "is on free, the default"
is "an empty table: the default limit applies" 3 "$(passed 61 5)"

echo "# another config"
sql "INSERT INTO weir_plans(subject, plan) VALUES ('user:50', 'gold'), ('user:70', 'platin')"
comes "a row for later" 50 "is on gold"
config "gold: 30/year, platin: 40/year" >"$work/weir.yaml"
has_tier() { plan status | grep -q "platin *40/year"; }
until_true 20 has_tier || is "another tier" yes "$(plan status)"
comes "a row that was invalid is valid now" 70 "is on platin: 40/year"
has "a tier that was changed" "is on gold: 30/year" "$(plan show user:50)"
sqlite3 "$work/own.db" "CREATE TABLE users(user_id TEXT PRIMARY KEY, plan TEXT); INSERT INTO users VALUES ('50', 'pro')"
sed -i 's|source:.*|source: sqlite:own.db\n  query: SELECT plan FROM users WHERE user_id = $1|' "$work/weir.yaml"
comes "tables of another program" 50 "is on pro"
sqlite3 "$work/own.db" "UPDATE users SET plan = 'gold'"
comes "a change there" 50 "is on gold"
has "tables of other programs are not written" "query" "$(plan set user:50 pro)"
has "limits of a subject beside them" "is on gold: 33/year" "$(plan override user:50 33/year)"
sed -i 's|sqlite:own.db|mysql:own.db|' "$work/weir.yaml"
failed() { plan status | grep -q "own.db" && metric_is weir_config_last_reload_successful 0; }
until_true 20 failed || is "a source that there is not changes nothing" yes "$(plan status)"
is "and the server still answers" 200 "$(ask 50)"
finish
