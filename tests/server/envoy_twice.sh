# One Envoy with two listeners that differ only in their rate limit service: envoyproxy/ratelimit or Weir, with the same
# files. The same requests through both get the same statuses and X-RateLimit-*.
#
# The reference charges a denied request and Weir does not, so the test restores its counters after each denial. What
# Weir adds, Retry-After, RateLimit and a body, is tested by envoy.sh. The seed is printed; WEIR_SEED repeats it.
source "$(dirname "$0")/reference.bash"
provide envoy
provide reference
need_redis
source "$(dirname "$0")/own_redis.bash"
seed=${WEIR_SEED:-$RANDOM$RANDOM}
requests=${WEIR_REQUESTS:-80}
echo "seed $seed, $requests requests (WEIR_SEED=$seed WEIR_REQUESTS=$requests repeats it)"
RANDOM=$seed

mkdir -p "$work/files/config"
cat >"$work/files/config/web.yaml" <<'YAML'
domain: web
descriptors:
  - {key: generic_key, value: slow, rate_limit: {unit: hour, requests_per_unit: 6}}
  - {key: generic_key, value: none, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: generic_key, value: trial, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 2}}
  - key: user
    rate_limit: {unit: day, requests_per_unit: 4}
    descriptors:
      - {key: path, rate_limit: {unit: hour, requests_per_unit: 3, name: per-path}}
      - {key: path, value: /nested/open*, rate_limit: {unlimited: true}}
  - {key: user, value: bob*, rate_limit: {unit: week, requests_per_unit: 5, name: bobs, replaces: [{name: usual}]}}
  - {key: user, value: boss, rate_limit: {unlimited: true}}
  - {key: remote_address, rate_limit: {unit: month, requests_per_unit: 1000, name: usual}}
YAML

user='{request_headers: {header_name: x-user, descriptor_key: user}}'
path="{request_headers: {header_name: ':path', descriptor_key: path}}"
# listener NAME PORT: a listener that queries the cluster of that name.
listener() {
  cat <<YAML
  - name: $1
    address: {socket_address: {address: 127.0.0.1, port_value: $2}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: $1
          use_remote_address: true
          route_config:
            virtual_hosts:
            - name: web
              domains: ["*"]
              routes:
              - match: {prefix: /slow}
                route: {cluster: app, rate_limits: [{actions: [{generic_key: {descriptor_value: slow}}]}]}
              - match: {prefix: /none}
                route: {cluster: app, rate_limits: [{actions: [{generic_key: {descriptor_value: none}}]}]}
              - match: {prefix: /trial}
                route:
                  cluster: app
                  rate_limits: [{actions: [{generic_key: {descriptor_value: trial}}]}, {actions: [$user]}]
              - match: {prefix: /nested}
                route: {cluster: app, rate_limits: [{actions: [$user, $path]}]}
              - match: {prefix: /free}
                route: {cluster: app}
              - match: {prefix: /}
                route: {cluster: app, rate_limits: [{actions: [{remote_address: {}}]}, {actions: [$user]}]}
          http_filters:
          - name: envoy.filters.http.ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
              domain: web
              timeout: 5s
              failure_mode_deny: true
              enable_x_ratelimit_headers: DRAFT_VERSION_03
              rate_limit_service:
                transport_api_version: V3
                grpc_service: {envoy_grpc: {cluster_name: $1}}
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
YAML
}

# cluster NAME PORT OPTIONS
cluster() {
  cat <<YAML
  - name: $1
    type: STATIC
    connect_timeout: 5s
    load_assignment:
      cluster_name: $1
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: $2}}}}]}]
YAML
  [ -z "${3:-}" ] || printf '    %s\n' 'typed_extension_protocol_options:' \
    '  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:' \
    '    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions' \
    '    explicit_http_config: {http2_protocol_options: {}}'
}

# No window of an hour or more ends while this runs.
not_at_the_end_of 3600 180
start_app
start_redis
start_reference "$work/files"
start_server --envoy "$work/files/config"
free_port to_reference to_weir
{
  echo static_resources:
  echo '  listeners:'
  listener reference "$to_reference"
  listener weir "$to_weir"
  echo '  clusters:'
  cluster app "$app_port"
  cluster reference "$reference_grpc_port" http2
  cluster weir "$grpc_port" http2
} >"$work/envoy.yaml"
start_gateway "$to_weir" "$envoy" -c "$work/envoy.yaml" --concurrency 1 --disable-hot-restart --log-level warning

# counters: what the reference has counted, as commands that set it again.
counters() {
  redis-cli -p "$redis_port" eval "local out = {} for _, key in ipairs(redis.call('keys', '*')) do
    out[#out + 1] = 'set ' .. key .. ' ' .. redis.call('get', key) end return out" 0
}

# seen PORT PATH USER: what a client sees that both have to say alike.
seen() {
  via "$1" "$2" ${3:+-H "x-user: $3"} | sed -n -e '/^$/q' -e '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' \
    -e '/^x-ratelimit-\|^x-envoy-ratelimited/p' | sort | paste -sd' '
}

without_first_limit() { sed 's/x-ratelimit-limit: [0-9]*, /x-ratelimit-limit: /' <<<"$1"; }

paths=(/slow /slow /none /trial /nested /nested/open/1 /nested/x /free / / /)
users=(alice bob1 bob2 boss carol '')
denied=0 differing=0
for n in $(seq "$requests"); do
  where=${paths[RANDOM % ${#paths[@]}]} who=${users[RANDOM % ${#users[@]}]}
  before=$(counters)
  began=$(date +%s)
  by_reference=$(seen "$to_reference" "$where" "$who")
  by_weir=$(seen "$to_weir" "$where" "$who")
  # If a second has passed in between, the time until the end of the window differs, and nothing else.
  if [ "$began" != "$(date +%s)" ]; then
    by_reference=${by_reference/x-ratelimit-reset: */} by_weir=${by_weir/x-ratelimit-reset: */}
  fi
  if [ "${by_reference:0:3}" == 429 ]; then
    denied=$((denied + 1))
    # Of several limits Envoy names one that has nothing left. The reference has charged all of them by now, so it may
    # name one that had a permit left, and that Weir has not charged.
    by_reference=$(without_first_limit "$by_reference") by_weir=$(without_first_limit "$by_weir")
    { echo flushall && echo "$before"; } | redis-cli -p "$redis_port" >/dev/null
  fi
  [ "$by_reference" == "$by_weir" ] || differing=$((differing + 1))
  [ "$differing" -ge 5 ] || is "$n: $where of ${who:-nobody}: ${by_reference:0:60}" "$by_reference" "$by_weir"
done
is "all the same" 0 "$differing"
at_least "some were denied" "$denied" $((requests / 8))
at_least "some passed" $((requests - denied)) $((requests / 4))
finish
