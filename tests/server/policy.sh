# Rules from outside: what `weir validate`, `explain` and `schema` print, and a server that decides by a config while
# the config changes and is damaged. An independent checker validates every example with the schema.
source "$(dirname "$0")/lib.bash"

program=$(realpath "$program")

# --- validate ---------------------------------------------------------------------------------------------------------
cp "$source_dir/examples/weir.yaml" "$work/weir.yaml"
exits "a good config: exit code" 0 weir validate "$work/weir.yaml"
has "a good config is called valid" "7 rules, valid" "$said"
cat >"$work/bad.yaml" <<'YAML'
rules:
  - {name: a, alogrithm: token_bucket, per: usr, limit: 100/minit}
  - {name: b, match: {path: api, methd: GET}, per: user, limit: 5/s}
YAML
exits "a bad config: exit code" 1 weir validate "$work/bad.yaml"
has "the nearest key" "bad.yaml:2:15: unknown key \`alogrithm\`, did you mean \`algorithm\`?" "$said"
has "the nearest attribute" "bad.yaml:2:45: \`per\`: unknown attribute 'usr', did you mean user?" "$said"
has "the column in a quota" "bad.yaml:2:61: \`limit\`: unknown unit 'minit'" "$said"
is "all errors at once" 5 "$(wc -l <<<"$said")"
exits "from the standard input" 0 weir validate - <"$work/weir.yaml"
: >"$work/empty.yaml"
prints "an empty config is an error" "empty.yaml:1:1: the config is empty" weir validate "$work/empty.yaml"
prints "no such file" "cannot be opened: No such file" weir validate "$work/none.yaml"
prints "a folder" "not a regular file" weir validate "$work"
mkfifo "$work/pipe"
prints "a FIFO does not hang it" "not a regular file" weir validate "$work/pipe"
head -c 104857600 /dev/zero >"$work/huge.yaml"
prints "100 MiB are not read" "longer than 1048576 bytes" weir validate "$work/huge.yaml"
cat >"$work/odd.yaml" <<'YAML'
trusted_proxies: [0.0.0.0/0]
skip: [/health]
rules:
  - {name: old, per: ip, limit: 1/s, expires_at: 2020-01-01}
  - {name: never, match: {path: /health}, per: ip, limit: 1/s}
  - {name: open, match: {tenant: acme}, limit: unlimited}
  - {name: shadowed, match: {tenant: acme, path: /x}, per: ip, limit: 1/s}
YAML
exits "warnings: exit code" 0 weir validate "$work/odd.yaml"
has "a warning for wide trust" "0.0.0.0/0 lets every client claim any address" "$said"
has "a warning for an expired rule" "odd.yaml:4:5: rule 'old' expired at 2020-01-01T00:00:00Z" "$said"
has "a warning for what can never match" "rule 'never' can never match" "$said"
has "a warning for what is shadowed" "rule 'shadowed' never applies: rule 'open' is unlimited" "$said"
cat >"$work/limits.yaml" <<'YAML'
rules:
  - {name: export, per: user, limit: 10/minute, cost: 20}
  - {name: audit, per: user, limit: 100000/day, algorithm: sliding_log}
YAML
prints "a cost above the limit" "limits.yaml:2:5: rule 'export' denies every request: each costs 20, and 10/minute" \
  weir validate "$work/limits.yaml"
has "a log that is too short" "limits.yaml:3:5: rule 'audit' may deny sooner than 100000/day says" "$said"
exits "--strict: exit code" 1 weir validate --strict "$work/odd.yaml"
sed 's/600\/minute/6\/minute/' "$work/weir.yaml" >"$work/cut.yaml"
exits "a cut of 100x: exit code" 1 weir validate "$work/cut.yaml" --against "$work/weir.yaml"
has "a cut of 100x is listed" "changed: address: 600/minute -> 6/minute" "$said"
has "and needs --force" "use --force if it is intended" "$said"
exits "forced: exit code" 0 weir validate "$work/cut.yaml" --against "$work/weir.yaml" --force

# --- explain ----------------------------------------------------------------------------------------------------------
prints "the path as rules see it" "path    /api/login" \
  weir explain --config "$work/weir.yaml" --path /API//login/ --method post --ip 1.2.3.4
has "a rule that applies, and its key" "+ login     enforced, per ip:1.2.3.4" "$said"
has "a rule that does not, and why" "- search    path is '/api/login', not /api/search" "$said"
has "an absent attribute" "- steps     the request has no user" "$said"
has "why otherwise does not apply" "- rest      rule login, which names a path, applies" "$said"
has "the worst case of a fixed window" "up to 1200 permits at once across a window boundary" "$said"
has "the state" "5 of 5 left" "$said"
out=$(cd "$work" && "$program" explain --path /x --user 42 --json)
is "--json prints valid JSON" "True everyone steps rest" "$("$python" -c '
import json, sys
e = json.load(sys.stdin)
print(e["allowed"], *[r["rule"] for r in e["rules"] if r["applies"]])' <<<"$out")"
prints "an API key is shown by its hash" "api_key:sha256:" \
  weir explain --config "$work/weir.yaml" --path /x --api-key topsecret
is "and never in the clear" 0 "$(grep -c topsecret <<<"$said")"
prints "behind a proxy" "client  9.9.9.9" \
  weir explain --config "$work/weir.yaml" --ip 10.0.0.1 --header 'X-Forwarded-For: 6.6.6.6, 9.9.9.9'

# --- schema -----------------------------------------------------------------------------------------------------------
"$program" schema >"$work/schema.json"
said=$("$python" - "$work/schema.json" "$source_dir/examples" "$work" <<'PY'
import datetime, glob, json, sys
import jsonschema, yaml

class Loader(yaml.SafeLoader):  # times stay texts, as Weir reads them
    pass
Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))

schema = json.load(open(sys.argv[1]))
checker = jsonschema.Draft202012Validator
checker.check_schema(schema)
files = glob.glob(sys.argv[2] + "/**/*.yaml", recursive=True)
assert len(files) > 20, files
for file in files + [sys.argv[3] + "/odd.yaml"]:
    checker(schema).validate(yaml.load(open(file), Loader))
for rule in ({"name": "a"}, {"name": "a", "limit": "1/s", "limits": ["1/s"]}, {"name": "a b", "limit": "1/s"},
             {"name": "a", "limit": "1/s", "alogrithm": "x"}, {"name": "a", "limit": "1/s", "match": {"pth": "/"}}):
    assert list(checker(schema).iter_errors({"rules": [rule]})), rule
for wrong in ({}, {"rules": []}, {"rule": []}):
    assert list(checker(schema).iter_errors(wrong)), wrong
keys = 0
for place in [schema["allOf"][0], *schema["$defs"].values()]:
    for name, key in place.get("properties", {}).items():
        keys += 1
        assert key["examples"], name
        for value in key["examples"] + ([key["default"]] if "default" in key else []):
            checker({**key, "$defs": schema["$defs"]}).validate(value)
assert keys >= 60, keys
print("ok")
PY
)
is "the schema is valid, and every example matches it" ok "$said"

# --- a server by rules ------------------------------------------------------------------------------------------------
start_server --config "$work/weir.yaml" --state "$work/state" --drain-delay 0
ask() { curl -s --max-time 20 -o "$work/body" -w '%{http_code}' "$http/v1/check" -d "$1"; }
login='{"path":"/api/login","method":"POST","ip":"192.0.2.1"}'
codes=$(for _ in 1 2 3 4 5 6; do ask "$login"; echo; done | uniq -c | tr -s ' \n' ' ')
is "five logins, then 429" " 5 200 1 429 " "$codes"
has "the rule and the limit that denied" '"rule":"login","limit_text":"5/5min","reason":"limited"' "$(cat "$work/body")"
has "for people" '"message":"Try again in ' "$(cat "$work/body")"
out=$(post "$login")
has "the headers name it, too" 'RateLimit: "login: 5/5min";r=0;t=' "$out"
is "and no other" 'RateLimit-Policy: "login: 5/5min";q=5;w=300' "$(grep RateLimit-Policy <<<"$out")"
is "another spelling is no way around it" 429 "$(ask '{"path":"//api/./LOGIN/?x=1","method":"POST","ip":"192.0.2.1"}')"
is "another address" 200 "$(ask '{"path":"/api/login","method":"POST","ip":"192.0.2.2"}')"
is "skipped" 200 "$(ask '{"path":"/health","ip":"192.0.2.1"}')"
has "and says so" '"reason":"skipped"' "$(cat "$work/body")"
is "a bad address is the caller's mistake" 400 "$(ask '{"ip":"nonsense"}')"
has "with the reason" "not an address such as 192.0.2.1" "$(cat "$work/body")"
is "a misspelt member" 400 "$(ask '{"usr":"42"}')"
has "with the reason, too" 'did you mean' "$(cat "$work/body")"
is "an inline limit goes beside the rules" 200 "$(ask '{"key":"k","limit":"1/s"}')"
is "a request without a path meets the rest" 200 "$(ask '{"user":"42"}')"
has "steps and rest" '"rule":"steps","limit_text":"10/second"' "$(cat "$work/body")"

# reload TEXT: sends SIGHUP, and waits until the log has one more line with this text.
err="$work/err0"
reload() {
  local lines
  lines=$(grep -c "$1" "$err")
  kill -HUP "$pid"
  until_true 20 eval "[ \$(grep -c '$1' '$err') -gt $lines ]" || is "reloaded: $1" yes no
}
sed 's/limit: 5\/5min/limit: 8\/5min/' "$source_dir/examples/weir.yaml" >"$work/weir.yaml"
reload "config reloaded"
codes=$(for _ in 1 2 3 4; do ask "$login"; echo; done | uniq -c | tr -s ' \n' ' ')
is "what was used stays used, three more are allowed" " 3 200 1 429 " "$codes"
for damage in bad empty huge; do
  cp "$work/$damage.yaml" "$work/weir.yaml"
  reload "config reload failed, keeping the previous rules"
  is "a config that is $damage changes nothing" 429 "$(ask "$login")"
done
has "and the log has its place" "weir.yaml:2:15: unknown key" "$(cat "$err")"
cp "$work/cut.yaml" "$work/weir.yaml"
reload "config reload failed, keeping the previous rules"
has "a change that is too large is not made" "cut from 600/minute to 6/minute, by more than 10x" "$(cat "$err")"
prints "explain looks into the state in use" "denied by login: 5/5min" weir explain \
  --config "$source_dir/examples/weir.yaml" --state "$work/state" --path /api/login --method POST --ip 192.0.2.1
ends_well "the server ends"
cp "$source_dir/examples/weir.yaml" "$work/weir.yaml"
start_server --config "$work/weir.yaml" --state "$work/state"
is "after a restart, what was used stays used" 429 "$(ask "$login")"

kill_server
cp "$source_dir/examples/weir.yaml" "$work/weir.yaml"
start_server --config "$work/weir.yaml" --force
err="$work/err2"
cp "$work/cut.yaml" "$work/weir.yaml"
reload "config reloaded"
has "unless it is forced" "changed: address: 600/minute -> 6/minute" "$(cat "$err")"

exits "a server does not start on a bad config" 1 weir serve --config "$work/bad.yaml" --http :0 --resp :0
has "and says why" "bad.yaml:2:15" "$said"
start_server
is "without a config there are no rules" 400 "$(ask '{"user":"42"}')"
has "and the answer says so" "start the server with --config" "$(cat "$work/body")"
finish
