# Files that the server opens for writing, and secrets that it reads. It does not change a file of another program,
# follows no link, makes its files for its own user, and warns of secrets that every user may read.
source "$(dirname "$0")/lib.bash"
command -v sqlite3 >/dev/null || { echo "this test needs sqlite3; ./dev setup brings it"; exit 1; }
umask 022
cat >"$work/weir.yaml" <<'YAML'
plans: {source: sqlite:plans.db, default: free, tiers: {free: 3/year}}
rules:
  - {name: plan, per: user, limit: plan}
YAML
start=(serve --http :0 --grpc off --resp off --admin :0 --config "$work/weir.yaml" --changes)
mode() { stat -c %a "$1"; }
json='Content-Type: application/json'
admin() { curl -s -m 60 "http://127.0.0.1:$admin_port/admin/v1/$1" -H "$json" -d "$2"; }
# text_of FILE: as a JSON text.
text_of() { "$python" -c 'import json, sys; print(json.dumps({"text": open(sys.argv[1]).read()}))' "$1"; }

echo "# --changes"
for text in hunter2 'hunter2\n' '\n' '{"id":7,"name":"bob"}\n' 'a\nb\n'; do
  printf "$text" >"$work/foreign"
  refuses 1 "weir: $work/foreign:" "${start[@]}" "$work/foreign"
  is "a foreign file ($text) is left as it is" "$(printf "$text" | sha256sum)" "$(sha256sum <"$work/foreign")"
done
printf hunter2 >"$work/foreign"
refuses 1 "is not a changes file, so it is left unchanged; give --changes a new file" "${start[@]}" "$work/foreign"
printf 'hunter2\n' >"$work/foreign"
ln -s "$work/foreign" "$work/link"
ln -s "$work/nowhere" "$work/dangling"
for link in link dangling; do
  refuses 1 "$work/$link: is a symbolic link; give --changes the path of the file itself" "${start[@]}" "$work/$link"
done
is "what it points to is as it was" hunter2 "$(cat "$work/foreign")"
is "and nothing is made" no "$([ -e "$work/nowhere" ] && echo yes || echo no)"

start_server --config "$work/weir.yaml" --changes "$work/changes"
is "a new file is for its user alone" 600 "$(mode "$work/changes")"
rm "$work/changes"
ln -s "$work/foreign" "$work/changes.new"
has "a removed one is made again" '"id":1' "$(admin kill-switch '{"on":true}')"
is "not through a link that lies in its way" hunter2 "$(cat "$work/foreign")"
is "it has the change" 1 "$(grep -c kill_switch "$work/changes")"
ln -s "$work/foreign" "$work/foreign_link"
mv -T "$work/foreign_link" "$work/changes" # in one step: the server writes a file again that is missing
has "a link in its place is refused" "is a symbolic link" "$(admin kill-switch '{"on":false}')"
is "and not written to" hunter2 "$(cat "$work/foreign")"
rm "$work/changes"
has "without it, changes are kept again" '"id":2' "$(admin kill-switch '{"on":false}')"

echo "# plans"
is "the database is for its user alone" 600 "$(mode "$work/plans.db")"
sed "s|sqlite:plans.db|sqlite:$work/elsewhere.db|; s/3/9/" "$work/weir.yaml" >"$work/other.yaml"
why='`source` of `plans` can be changed in the config file only; keep its value here'
for route in apply validate; do
  has "config/$route refuses another source" "$why" "$(admin "config/$route" "$(text_of "$work/other.yaml")")"
done
has "config/validate is not ok then" '"ok":false' "$(admin config/validate "$(text_of "$work/other.yaml")")"
prints "weir rules apply says so" "$why" weir rules apply "$work/other.yaml" --force --admin "127.0.0.1:$admin_port"
sed '1s|default|query: "SELECT plan FROM users WHERE id = $1", default|' "$work/weir.yaml" >"$work/query.yaml"
for route in apply validate; do
  has "config/$route refuses another query" '`query` of `plans` can be changed in the config file only' \
    "$(admin "config/$route" "$(text_of "$work/query.yaml")")"
done
for text in 'store: redis://127.0.0.1:1' 'import: {envoy: /etc}'; do
  { echo "$text" && cat "$work/weir.yaml"; } >"$work/more.yaml"
  said=$(admin config/apply "$(text_of "$work/more.yaml")" | grep -o '`[a-z]*` can be changed in the config file only')
  is "config/apply refuses ${text%%:*}" "\`${text%%:*}\` can be changed in the config file only" "$said"
  has "config/validate, too" "$said" "$(admin config/validate "$(text_of "$work/more.yaml")")"
done
sed 's/3/9/' "$work/weir.yaml" >"$work/same.yaml"
has "other limits are applied" '"changes"' "$(admin config/apply "$(text_of "$work/same.yaml")")"
is "no database was made elsewhere" no "$([ -e "$work/elsewhere.db" ] && echo yes || echo no)"
mkdir "$work/linked"
cp "$work/weir.yaml" "$work/linked"
ln -s "$work/elsewhere.db" "$work/linked/plans.db"
start_server --config "$work/linked/weir.yaml"
is "nor where a link to nothing points" no "$([ -e "$work/elsewhere.db" ] && echo yes || echo no)"

echo "# secrets"
warning="secret file is readable or writable by every user"
head -c 64 /dev/zero | tr '\0' t >"$work/token"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=weir -keyout "$work/key.pem" \
  -out "$work/cert.pem" 2>/dev/null
chmod 644 "$work/token" "$work/key.pem"
# warned ARGUMENTS: starts a server, ends it, and prints what it logged.
warned() {
  local n=${#server_pids[@]}
  start_server "$@"
  ends_well "the server ends"
  logged=$(cat "$work/err$n")
}
all=(--admin-token-file "$work/token" --password-file "$work/token" --tls-cert "$work/cert.pem"
  --tls-key "$work/key.pem" --tls http)
warned "${all[@]}"
for what in --admin-token-file --password-file --tls-key; do
  has "$what that all may read is a warning" "$warning what=$what" "$logged"
done
has "it says what to do" "fix=\"chmod o-rwx $work/token\"" "$logged"
chmod 640 "$work/token" "$work/key.pem"
warned "${all[@]}"
is "a file that only a group can read gives none" 0 "$(grep -c "$warning" <<<"$logged")"
chmod 602 "$work/token"
warned --admin-token-file "$work/token"
is "a file that every user can write gives a warning" 1 "$(grep -c "$warning" <<<"$logged")"
finish
