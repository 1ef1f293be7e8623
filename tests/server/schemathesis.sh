# Schemathesis reads our OpenAPI document and tests the server against it. It sends requests that the document allows,
# requests that it forbids, and compares every answer with the document. The seed is fixed, or WEIR_SEED.
source "$(dirname "$0")/lib.bash"
provide schemathesis

cat >"$work/weir.yaml" <<'YAML'
trusted_proxies: [127.0.0.1]
rules:
  - {name: address, per: ip, limit: 1000000/minute}
  - {name: search, match: {path: /api/search}, per: user, limit: 5/minute}
YAML
# Forward-auth takes any method, also those that no document can list.
cat >"$work/schemathesis.toml" <<'TOML'
[[operations]]
include-path-regex = "^/auth"
checks.unsupported_method.enabled = false
TOML
start_server --config "$work/weir.yaml"
seed=${WEIR_SEED:-7}
echo "seed $seed"
(cd "$work" && PYTHONPATH=$schemathesis_path timeout 600 "$python" -m schemathesis.cli run "$http/openapi.json" \
  --seed "$seed" --max-examples 12 --phases examples,coverage,fuzzing --no-color --request-timeout 60 \
  --generation-database none) >"$work/said" 2>&1
is "schemathesis finds nothing" 0 $?
[ "$failures" == 0 ] || cat "$work/said"
grep -A1 '^Test cases:' "$work/said"
tested=$(awk '/^  Selected:/{print $2} /^  Tested:/{print $2 "/" $2}' "$work/said" | uniq)
is "every operation was tested" yes "$([[ "$tested" =~ ^[1-9][0-9]+/[0-9]+$ ]] && echo yes || echo "no: $tested")"
is "the server still answers" ok "$(curl -s -m 60 "$http/livez")"
finish
