# Certificates for the tests of TLS, made by openssl and valid for this run.
#
# authority NAME; certificate AUTHORITY NAME [DAYS [FOR]]: NAME.pem and NAME.key in $work. Clients trust "$work/ca.pem".
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
command -v openssl >/dev/null || { echo "this test needs openssl; ./dev setup brings it"; exit 1; }

authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$work/$1.key" \
    -out "$work/$1.pem" -days 30 -subj "/CN=$1" -addext basicConstraints=critical,CA:TRUE 2>/dev/null
}

certificate() {
  local csr=$work/$2.csr
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$work/$2.key" -out "$csr" \
    -subj "/CN=$2" 2>/dev/null
  openssl x509 -req -in "$csr" -CA "$work/$1.pem" -CAkey "$work/$1.key" -set_serial "0x$(openssl rand -hex 8)" \
    -days "${3:-30}" -extfile <(echo "subjectAltName=${4:-DNS:localhost,IP:127.0.0.1}") -out "$work/$2.pem" 2>/dev/null
}

# serial_at PORT: of the certificate that is shown there.
serial_at() {
  timeout 60 openssl s_client -connect "127.0.0.1:$1" </dev/null 2>/dev/null | openssl x509 -noout -serial 2>/dev/null
}
serial_of() { openssl x509 -noout -serial -in "$1"; }

secure_curl() { curl -s -m 60 --cacert "$work/ca.pem" "$@"; }
secure_redis() {
  timeout 600 redis-cli --tls --cacert "$work/ca.pem" -p "$resp_port" "$@" 2>&1 | paste -sd' ' | sed 's/ *$//'
}
