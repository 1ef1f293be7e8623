# Clients that the admin port must refuse: without the token, by a DNS name that leads here, from a page of another
# site, by a form, with a flood. Names that an attacker chose come back escaped.
source "$(dirname "$0")/lib.bash"

echo 'rules: [{name: login, per: user, limit: 2/year}]' >"$work/weir.yaml"
token=0123456789abcdef0123456789abcdef
echo "$token" >"$work/token"
start_server --config "$work/weir.yaml" --admin-token-file "$work/token" --admin-host admin.example.com
url=http://127.0.0.1:$admin_port
json='Content-Type: application/json'
auth="Authorization: Bearer $token"
code() { curl -s -m 60 -o "$work/body" -D "$work/head" -w '%{http_code}' "$@"; }

# --- the token --------------------------------------------------------------------------------------------------------
is "without a token" 401 "$(code "$url/admin/v1/status")"
has "the answer says how to authenticate" "WWW-Authenticate: Bearer" "$(cat "$work/head")"
is "with a wrong one" 401 "$(code "$url/admin/v1/status" -H 'Authorization: Bearer 0123456789abcdef0123456789abcdee')"
is "with half of it" 401 "$(code "$url/admin/v1/status" -H 'Authorization: Bearer 0123456789abcdef')"
is "a change without one" 401 "$(code "$url/admin/v1/kill-switch" -H "$json" -d '{"on":true}')"
counted=$(metrics | awk '/^weir_refused_total.*reason="token"/ { n += $NF } END { print n }')
is "they are counted" 4 "$counted"
has "and logged" "wrong or missing admin token" "$(cat "$work/err$((${#server_pids[@]} - 1))")"
is "with it" 200 "$(code "$url/admin/v1/status" -H "$auth")"
has "which shows no token" '"kill_switch":false' "$(cat "$work/body")"
is "nor does any answer" 0 "$(grep -c "$token" "$work/body")"
is "alive: open" 200 "$(code "$url/livez")"
is "ready: open" 200 "$(code "$url/readyz")"
is "metrics: open" 200 "$(code "$url/metrics")"

# --- other sites ------------------------------------------------------------------------------------------------------
is "a DNS name that points here" 403 "$(code "$url/admin/v1/status" -H "$auth" -H 'Host: evil.example.com')"
is "one that begins like ours" 403 "$(code "$url/admin/v1/status" -H "$auth" -H 'Host: localhost.evil.example.com')"
is "a name that was allowed" 200 "$(code "$url/admin/v1/status" -H "$auth" -H 'Host: admin.example.com:8082')"
is "localhost" 200 "$(code "$url/admin/v1/status" -H "$auth" -H 'Host: localhost')"
is "alive, by any name" 200 "$(code "$url/livez" -H 'Host: evil.example.com')"
is "metrics, by a DNS name that points here" 403 "$(code "$url/metrics" -H 'Host: evil.example.com')"
is "metrics, by a name that was allowed" 200 "$(code "$url/metrics" -H 'Host: admin.example.com')"
is "a page of another site" 403 \
  "$(code "$url/admin/v1/kill-switch" -H "$auth" -H "$json" -H 'Origin: https://evil.example.com' -d '{"on":true}')"
is "a page without a site" 403 \
  "$(code "$url/admin/v1/kill-switch" -H "$auth" -H "$json" -H 'Origin: null' -d '{"on":true}')"
is "a form" 415 "$(code "$url/admin/v1/kill-switch" -H "$auth" -d '{"on":true}')"
is "a form as text" 415 "$(code "$url/admin/v1/kill-switch" -H "$auth" -H 'Content-Type: text/plain' -d '{"on":true}')"
is "asked beforehand, as browsers do" 405 \
  "$(code -X OPTIONS "$url/admin/v1/kill-switch" -H "$auth" -H "$json" -H "Origin: $url")"
is "nothing of that had an effect" 1 "$(curl -s -H "$auth" "$url/admin/v1/status" | grep -c '"kill_switch":false')"

# --- floods -----------------------------------------------------------------------------------------------------------
head -c 10485760 /dev/zero | tr '\0' a >"$work/huge"
rss=$(rss_kib "$pid")
is "10 MiB" 413 "$(code "$url/admin/v1/config/apply" -H "$auth" -H "$json" -H 'Expect:' --data-binary "@$work/huge")"
is "10 MiB in chunks" 413 \
  "$(code "$url/admin/v1/config/apply" -H "$auth" -H "$json" -H 'Expect:' -H 'Transfer-Encoding: chunked' \
    --data-binary "@$work/huge")"
nested=$(printf '[%.0s' $(seq 5000))
is "a deep body" 400 "$(code "$url/admin/v1/keys/explain" -H "$auth" -H "$json" -d "{\"x\":$nested}")"
for i in $(seq 40); do
  curl -s -m 60 -o /dev/null "$url/admin/v1/status" -H "Authorization: Bearer guess-$i" &
  guesses[i]=$!
done
is "while a client guesses, others are answered" 200 "$(code "$url/admin/v1/status" -H "$auth")"
wait "${guesses[@]}"
grown=$(($(rss_kib "$pid") - rss))
is "all that took at most 32 MiB ($grown KiB)" yes "$([ "$grown" -le 32768 ] && echo yes)"

# --- names ------------------------------------------------------------------------------------------------------------
# Users with these names are denied, shown as top keys, explained, reset and banned. Every answer is JSON.
answers=$("$python" - "$http" "$url" "$token" <<'PY'
import json, sys, urllib.request
http, admin, token = sys.argv[1:]

def call(url, body=None, method=None):
    request = urllib.request.Request(url, data=body, method=method, headers={
        "Content-Type": "application/json", "Authorization": "Bearer " + token})
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    return answer

names = ["<img src=x onerror=alert(1)>", "\"'><script>", "\u0000\u001b[31m", "a\r\nSet-Cookie: x", "\u202e",
         "${jndi:x}", "{{7*7}}", "x" * 500]
bodies = [json.dumps({"user": name}).encode() for name in names] + [b'{"user":"\xff\xfe"}']
for body in bodies:
    for _ in range(4):
        call(http + "/v1/check", body)
    for path, more in (("explain", b""), ("reset", b',"rule":"login"'), ("ban", b',"for":"1h","reason":"<b>x</b>"')):
        answer = call(admin + "/admin/v1/keys/" + path, body[:-1] + more + b"}")
        text = answer.read()
        json.loads(text)
        assert answer.headers["Content-Type"].startswith("application/"), answer.headers
        assert answer.headers["X-Content-Type-Options"] == "nosniff", answer.headers
        assert "Set-Cookie" not in answer.headers
for path in ("top?by=denied&n=100", "top", "changes?n=100", "rules", "config", "status"):
    answer = call(admin + "/admin/v1/" + path)
    text = answer.read()
    json.loads(text)
    assert all(byte >= 32 or byte in b"\n" for byte in text), path
    assert answer.headers["Content-Type"] == "application/json", path
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'", path
    assert answer.headers["Cache-Control"] == "no-store", path
top = json.loads(call(admin + "/admin/v1/top?by=denied&n=100").read())
assert any("img src=x" in one["key"] for one in top["keys"]), top
print("ok")
PY
)
is "odd names come back as JSON" ok "$answers"
is "a caller with an odd name" 400 \
  "$(code "$url/admin/v1/kill-switch" -H "$auth" -H "$json" -H "X-Weir-Who: $(printf 'a\xff')" -d '{"on":true}')"

# --- how it starts ----------------------------------------------------------------------------------------------------
refuses_admin() { refuses 1 "$1" serve --http :0 --grpc off --resp off "${@:2}"; }
refuses_admin "--admin-token-file FILE" --admin 0.0.0.0:0
echo short >"$work/short"
refuses_admin "fewer than 16 bytes" --admin-token-file "$work/short"
refuses_admin "cannot be opened" --admin-token-file "$work/none"
"$program" serve --http :0 --grpc off --resp off --admin "unix:$work/admin.sock" >"$work/out_unix" 2>"$work/err_unix" &
started
until_true 20 is_announced "$work/out_unix"
is "a unix socket, by any name" 200 \
  "$(code --unix-socket "$work/admin.sock" http://weir/admin/v1/status)"
still_answers "after all"
finish
