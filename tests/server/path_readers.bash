# How real gateways and libraries read thousands of spellings of a path, compared with what Weir charges. For
# path_readers.sh and path_readers_long.sh. Skips, with a message, programs that are not available.
source "$(dirname "${BASH_SOURCE[0]}")/gateway.bash"
readers_dir=$source_dir/tests/server/readers
compared=()

# has_provided NAME: as `provide`, but the test goes on without it.
has_provided() {
  local said
  if ! said=$(provide "$1"); then
    echo "      without $1: ${said#*: }"
    return 1
  fi
  provide "$1"
}

# add_reader NAME PROGRAM [ARGUMENTS]: a library, if the machine has the program.
add_reader() {
  if command -v "$2" >/dev/null; then compared+=("reader $1 ${*:2}"); else echo "      without $1"; fi
}

add_readers() {
  local java=java
  go build -o "$work/reader" "$readers_dir/reader.go" 2>"$work/err_go"
  echo 2f | java "$readers_dir/Reader.java" >/dev/null 2>&1 || java=no_java
  add_reader Python "$python" "$readers_dir/reader.py"
  add_reader Node node "$readers_dir/reader.mjs"
  add_reader Go "$work/reader"
  add_reader Java "$java" "$readers_dir/Reader.java"
  add_reader PHP php "$readers_dir/reader.php"
}

# add_gateway NAME PORT
add_gateway() { compared+=("gateway $1 $2"); }

with_nginx() {
  has_provided nginx || return
  local raw normal unmerged decoded
  free_port raw normal unmerged decoded
  nginx_config crit >"$work/nginx.conf" <<CONF
  keepalive_requests 1000000;
  server { listen 127.0.0.1:$raw; location / { proxy_pass http://127.0.0.1:$echo_port; } }
  server { listen 127.0.0.1:$normal; location / { proxy_pass http://127.0.0.1:$echo_port/; } }
  server { listen 127.0.0.1:$unmerged; merge_slashes off; location / { proxy_pass http://127.0.0.1:$echo_port/; } }
  server { listen 127.0.0.1:$decoded; location / { proxy_pass http://127.0.0.1:$echo_port\$uri\$is_args\$args; } }
CONF
  start_gateway "$normal" "$nginx" -e "$work/err_nginx.log" -c "$work/nginx.conf"
  add_gateway nginx "$raw"
  add_gateway nginx-normalising "$normal"
  add_gateway nginx-without-merge_slashes "$unmerged"
  add_gateway "nginx-\$uri" "$decoded"
}

with_haproxy() {
  has_provided haproxy || return
  local raw normal dots
  free_port raw normal dots
  cat >"$work/haproxy.cfg" <<CONF
global
  expose-experimental-directives
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
frontend raw
  bind 127.0.0.1:$raw
  default_backend app
frontend normal
  bind 127.0.0.1:$normal
  http-request normalize-uri fragment-strip
  http-request normalize-uri percent-decode-unreserved
  http-request normalize-uri path-strip-dot
  http-request normalize-uri path-strip-dotdot full
  http-request normalize-uri path-merge-slashes
  default_backend app
frontend dots
  bind 127.0.0.1:$dots
  http-request normalize-uri path-strip-dotdot
  http-request normalize-uri percent-decode-unreserved
  default_backend app
backend app
  server app 127.0.0.1:$echo_port
CONF
  start_gateway "$normal" "$haproxy" -db -f "$work/haproxy.cfg"
  add_gateway HAProxy "$raw"
  add_gateway HAProxy-normalising "$normal"
  add_gateway HAProxy-path-strip-dotdot "$dots"
}

with_caddy() {
  has_provided caddy || return
  local front
  free_port front
  printf '{\n admin off\n auto_https off\n}\nhttp://:%s {\n reverse_proxy 127.0.0.1:%s\n}\n' "$front" "$echo_port" \
    >"$work/Caddyfile"
  start_gateway "$front" env XDG_DATA_HOME="$work" XDG_CONFIG_HOME="$work" "$caddy" run --adapter caddyfile \
    --config "$work/Caddyfile"
  add_gateway Caddy "$front"
}

with_traefik() {
  has_provided traefik || return
  local front
  free_port front
  cat >"$work/traefik.yml" <<YAML
http:
  routers: {app: {rule: "PathPrefix(\`/\`)", service: app}}
  services: {app: {loadBalancer: {servers: [{url: "http://127.0.0.1:$echo_port"}]}}}
YAML
  start_gateway "$front" "$traefik" --entrypoints.web.address="127.0.0.1:$front" \
    --providers.file.filename="$work/traefik.yml" --global.checknewversion=false --global.sendanonymoususage=false
  add_gateway Traefik "$front"
}

with_apache() {
  has_provided apache || return
  local raw normal
  free_port raw normal
  {
    for module in mpm_event proxy proxy_http authz_core unixd; do
      [ ! -e "$apache_modules/mod_$module.so" ] || echo "LoadModule ${module}_module $apache_modules/mod_$module.so"
    done
    echo "ServerName h
Listen 127.0.0.1:$raw
Listen 127.0.0.1:$normal
PidFile $work/apache.pid
ErrorLog $work/err_apache.log
LogLevel crit
MaxKeepAliveRequests 0
<VirtualHost 127.0.0.1:$raw>
  AllowEncodedSlashes NoDecode
  ProxyPass / http://127.0.0.1:$echo_port/ nocanon
</VirtualHost>
<VirtualHost 127.0.0.1:$normal>
  AllowEncodedSlashes On
  ProxyPass / http://127.0.0.1:$echo_port/
</VirtualHost>"
  } >"$work/apache.conf"
  start_gateway "$normal" "$apache" -X -d "$work" -f "$work/apache.conf"
  add_gateway Apache "$raw"
  add_gateway Apache-normalising "$normal"
}

# envoy_listener PORT OPTION...: YAML of one.
envoy_listener() {
  local port=$1 type=type.googleapis.com/envoy.extensions.filters
  shift
  cat <<YAML
  - address: {socket_address: {address: 127.0.0.1, port_value: $port}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          '@type': $type.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: p$port
$(printf '          %s\n' "$@")
          route_config:
            virtual_hosts:
            - {name: app, domains: ['*'], routes: [{match: {prefix: '/'}, route: {cluster: app}}]}
          http_filters:
          - {name: envoy.filters.http.router, typed_config: {'@type': $type.http.router.v3.Router}}
YAML
}

with_envoy() {
  has_provided envoy || return
  local raw normal unescaped kept
  free_port raw normal unescaped kept
  {
    printf 'static_resources:\n  listeners:\n'
    envoy_listener "$raw" "normalize_path: false"
    envoy_listener "$normal" "normalize_path: true" "merge_slashes: true"
    envoy_listener "$unescaped" "normalize_path: true" "path_with_escaped_slashes_action: UNESCAPE_AND_FORWARD"
    envoy_listener "$kept" "normalize_path: false" "path_with_escaped_slashes_action: UNESCAPE_AND_FORWARD"
    cat <<YAML
  clusters:
  - name: app
    type: STATIC
    load_assignment:
      cluster_name: app
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: $echo_port}}}
YAML
  } >"$work/envoy.yaml"
  start_gateway "$unescaped" "$envoy" -c "$work/envoy.yaml" --log-level error --concurrency 1 --disable-hot-restart
  add_gateway Envoy "$raw"
  add_gateway Envoy-normalising "$normal"
  add_gateway Envoy-unescaping "$unescaped"
  add_gateway Envoy-unescaping-only "$kept"
}

# compare_readers COUNT: the whole test, with COUNT spellings: others each time, unless WEIR_SEED is set.
compare_readers() {
  cat >"$work/weir.yaml" <<YAML
answers: {limits: all}
skip: [/health, "/static/**"]
rules:
  - {name: login, match: {path: /api/login}, per: ip, limit: 1000000000/year}
  - {name: rest, match: otherwise, per: ip, limit: 1000000000/year}
YAML
  start_server --config "$work/weir.yaml"
  start_app readers/echo.py echo_port
  add_readers
  local gateway
  for gateway in nginx haproxy caddy traefik apache envoy; do "with_$gateway"; done
  "$python" "$readers_dir/compare.py" "$http_port" "$1" "${WEIR_SEED:-$((RANDOM * 32768 + RANDOM))}" "${compared[@]}"
  is "no spelling that a server reads as /api/login goes uncounted" 0 $?
}
