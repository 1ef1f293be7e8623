# The files of Envoy's rate limit service: how a running server applies them over POST /json and gRPC, reloads them, and
# reports bad ones. Limits are per year, so no window ends during the test.
source "$(dirname "$0")/lib.bash"

dir=$work/config
mkdir -p "$dir"
limit() { printf 'rate_limit: {unit: year, requests_per_unit: %s%s}' "$1" "${2:-}"; }
cat >"$dir/edge.yaml" <<YAML
domain: edge
descriptors:
  - {key: user, $(limit 2)}
  - {key: user, value: vip, $(limit 5 ', name: vip')}
  - key: path
    value: '/api/*'
    share_threshold: true
    $(limit 2)
  - key: tenant
    descriptors:
      - {key: user, detailed_metric: true, $(limit 1)}
  - {key: open, rate_limit: {unlimited: true}}
  - {key: shadow, shadow_mode: true, $(limit 1)}
  - {key: quota_a, quota_mode: true, $(limit 1)}
  - {key: quota_b, quota_mode: true, $(limit 2)}
  - {key: all, $(limit 0 ', name: all')}
  - {key: premium, $(limit 9 ', replaces: [{name: all}]')}
YAML
start_server --envoy "$dir"
has "it is announced" "envoy $dir, 10 limits of 1 domain;" "$(cat "$work/out0")"

# entries NAME VALUE...: as JSON.
entries() {
  local out=''
  while [ $# -gt 0 ]; do out="$out,{\"key\":\"$1\",\"value\":\"$2\"}" && shift 2; done
  echo "{\"entries\":[${out#,}]}"
}
# ask DESCRIPTOR...: the answer of domain edge, as JSON.
ask() {
  local all
  all=$(IFS=, && echo "$*")
  curl -s -m 60 "$http/json" -d "{\"domain\":\"${domain:-edge}\",\"descriptors\":[$all]}"
}
# code ENTRIES...: OK or OVER_LIMIT, overall.
code() { ask "$(entries "$@")" | grep -o '"overallCode":"[A-Z_]*' | cut -d'"' -f4; }
codes() { ask "$@" | grep -o '"\(overallCode\|code\)":"[A-Z_]*' | cut -d'"' -f4 | paste -sd' '; }
left() { ask "$(entries "$@")" | grep -o '"limitRemaining":[0-9]*' | cut -d: -f2; }

is "a value counts for itself" "OK OK OVER_LIMIT OK" "$(code user a) $(code user a) $(code user a) $(code user b)"
answer=$(ask "$(entries user vip)")
has "the answer names the limit" '"currentLimit":{"requestsPerUnit":5,"unit":"YEAR","name":"vip"}' "$answer"
has "what remains" '"limitRemaining":4' "$answer"
seconds=$(grep -o '"durationUntilReset":"[0-9]*s' <<<"$answer" | grep -o '[0-9]*')
now=$(date +%s)
drift=$((31536000 - now % 31536000 - seconds))
is "the window ends with the unit ($drift s off)" yes "$([ "${drift#-}" -le 60 ] && echo yes)"
is "a shared wildcard is one count" "OK OK OVER_LIMIT" "$(code path /api/a) $(code path /api/b) $(code path /api/c)"
is "depth must be equal" "OK OK OVER_LIMIT" "$(code tenant t) $(code tenant t user u) $(code tenant t user u)"
is "no limit applies" '{"code":"OK"}' "$(ask "$(entries other x)" | grep -o '{"code":"OK"}')"
is "unlimited" 4294967295 "$(left open x)"
is "in shadow" "OK OK" "$(code shadow x) $(code shadow x)"
is "nothing per year" OVER_LIMIT "$(code all x)"
is "replaced" OK "$(ask "$(entries all x)" "$(entries premium x)" | grep -o '"overallCode":"[A-Z_]*' | cut -d'"' -f4)"
both() { codes "$(entries quota_a x)" "$(entries quota_b x)"; }
is "quotas: all have room" "OK OK OK" "$(both)"
is "quotas: one has" "OK OVER_LIMIT OK" "$(both)"
is "quotas: none has" "OVER_LIMIT OVER_LIMIT OVER_LIMIT" "$(both)"
is "a denied request charges nothing" "OVER_LIMIT OK OVER_LIMIT 3" \
  "$(codes "$(entries user vip)" "$(entries all x)") $(left user vip)"

override='{"entries":[{"key":"own","value":"x"}],"limit":{"requestsPerUnit":1,"unit":"DAY"}}'
is "a limit that the request brings" "OK OK OVER_LIMIT OVER_LIMIT" "$(codes "$override") $(codes "$override")"
is "but not in a domain that is not known" "OK OK" "$(domain=elsewhere codes "${override/:1,/:0,}")"

# gRPC: domain edge, user=g, as bytes of protobuf.
if curl --version | grep -q HTTP2; then
  message='\x0a\x04edge\x12\x0b\x0a\x09\x0a\x04user\x12\x01g'
  grpc_code() {
    printf '\0\0\0\0\x13'"$message" | curl -s -m 60 --http2-prior-knowledge -H 'content-type: application/grpc' \
      -H 'te: trailers' --data-binary @- -o "$work/grpc" \
      "http://127.0.0.1:$grpc_port/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
    od -An -j5 -N2 -tx1 "$work/grpc" | tr -d ' '
  }
  is "over gRPC, too" "0801 0801 0802" "$(grpc_code) $(grpc_code) $(grpc_code)"
else
  skip "over gRPC" "this curl speaks no HTTP/2"
fi

# Metrics.
hits() { metric "weir_envoy_hits_total{domain=\"edge\",descriptor=\"$1\",result=\"$2\"}"; }
is "over the limit" 2 "$(hits all over_limit)"
is "in shadow, counted" 1 "$(hits shadow shadow_mode)"
is "near it" 1 "$(hits shadow near_limit)"
is "a detailed name" 1 "$(hits tenant_t.user_u over_limit)"
is "unknown domains" 1 "$(metric weir_envoy_unknown_domain_total)"
is "domains" "1 10" "$(metric weir_envoy_domains) $(metric weir_envoy_limits)"

# Reading again.
small() { printf 'domain: %s\ndescriptors:\n  - {key: k, %s}\n' "$1" "$(limit "$2")"; }
# limit_of DOMAIN: what the files say, without a hit.
limit_of() {
  local question
  question=$(entries k x)
  domain=$1 ask "${question%\}},\"hitsAddend\":\"0\"}" |
    grep -o '"requestsPerUnit":[0-9]*' | cut -d: -f2
}
limit_is() { [ "$(limit_of "$1")" == "$2" ]; }
comes() { until_true 20 limit_is "$2" "$3"; is "$1" "$3" "$(limit_of "$2")"; }
small new 7 >"$dir/new.yaml"
comes "a file is added" new 7
small new 8 >"$dir/.tmp"
mv "$dir/.tmp" "$dir/new.yaml"
comes "renamed into place" new 8
mkdir "$dir/below"
small below 9 >"$dir/below/b.yml"
comes "in a folder below" below 9
failed() { metric 'weir_config_reloads_total{outcome="failed"}'; }
has_failed() { [ "$(failed)" -gt "$1" ]; }
before=$(failed)
small new 10 >"$dir/new.yaml"
echo 'descriptor: []' >>"$dir/new.yaml"
until_true 20 has_failed "$before" || is "a bad file is counted" yes no
is "a bad file changes nothing" 8 "$(limit_of new)"
has "the log has it with its place" "new.yaml:4:1: unknown key 'descriptor', did you mean" "$(cat "$work/err0")"
rm "$dir/new.yaml"
comes "a file is removed" new ""
is "the other files stay" 9 "$(limit_of below)"
is "what was used stays used" OVER_LIMIT "$(code user a)"

# The kill switch, and a ban; there is no config.
admin() {
  curl -s -f -m 60 -H 'content-type: application/json' "http://127.0.0.1:$admin_port/admin/v1/$1" -d "$2" >/dev/null
}
admin kill-switch '{"on":true,"reason":"test"}'
is "the kill switch lifts all" OK "$(code user a)"
admin kill-switch '{"on":false,"reason":"test"}'
is "and puts them back" OVER_LIMIT "$(code user a)"
admin keys/ban '{"user":"c","for":"1h","reason":"test"}'
is "a ban is in effect" "OVER_LIMIT OK" "$(code user c) $(code user d)"

# The whole folder behind a link, which is swapped; SIGHUP without watching; by the config; as one file.
mkdir "$work/v1" "$work/v2"
small d 1 >"$work/v1/d.yaml"
small d 2 >"$work/v2/d.yaml"
ln -s v1 "$work/current"
printf 'import: {envoy: current, algorithm: token_bucket}\n' >"$work/weir.yaml"
start_server --config "$work/weir.yaml"
is "from the folder of the config" 1 "$(limit_of d)"
ln -s v2 "$work/current_tmp"
mv -T "$work/current_tmp" "$work/current"
comes "the folder's link is swapped" d 2
printf 'import: {envoy: v1}\n' >"$work/weir.yaml"
comes "the config names another folder" d 1
start_server --envoy "$work/v1/d.yaml" --no-watch
is "one file" 1 "$(limit_of d)"
small d 3 >"$work/v1/d.yaml"
sleep 1
is "--no-watch: the server does not read it" 1 "$(limit_of d)"
kill -HUP "$pid"
comes "SIGHUP" d 3

# weir validate reads them, too.
printf 'import: {envoy: v1}\n' >"$work/weir.yaml"
prints "validated" "0 rules, 1 limit from Envoy's files, valid" weir validate "$work/weir.yaml"
sed -i 's/year/fortnight/' "$work/v1/d.yaml"
prints "validated: bad" "v1/d.yaml:3:33: unknown unit 'fortnight'" weir validate "$work/weir.yaml"
sed -i 's/fortnight/year/' "$work/v1/d.yaml"

# What is refused at the start.
small d x >"$work/v2/d.yaml"
serves_not "v2/d.yaml:3:" --envoy "$work/v2"
serves_not "cannot be opened" --envoy "$work/nowhere"
mkdir "$work/empty"
serves_not "contains no .yaml, .yml or .json file" --envoy "$work/empty"
small d 1 >"$work/empty/a.yaml"
small d 1 >"$work/empty/b.yaml"
serves_not "b.yaml:1:9: the domain 'd' is in" --envoy "$work/empty"
serves_not "remove one of them" --envoy "$work/v1" --config "$work/weir.yaml"
serves_not "--envoy-algorithm: " --envoy "$work/v1" --envoy-algorithm concurrency
finish
