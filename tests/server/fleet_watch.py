"""Sends checks of new keys to a server for some seconds, and reports who decided and how long the answers took.

fleet_watch.py URL SECONDS END: prints a line whenever `decided_by` changes, then numbers as NAME=VALUE. Stops early if
there is a file END. Keys are new, so that no denial comes from the cache. Used by fleet_fault*.sh.
"""
import http.client, json, os, sys, time, urllib.parse

url, seconds = urllib.parse.urlparse(sys.argv[1]), float(sys.argv[2])
connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
took, errors, changes, last, n = [], 0, 0, None, 0
end = time.monotonic() + seconds
while time.monotonic() < end and not os.path.exists(sys.argv[3]):
    n += 1
    body = json.dumps({"user": f"watch{n}", "path": "/search"})
    began = time.monotonic()
    try:
        connection.request("POST", "/v1/check", body)
        answer = json.loads(connection.getresponse().read())
        limit = answer.get("limits", [{}])[0]
        made = limit.get("decided_by") or answer["decided_by"]
    except Exception as error:
        errors += 1
        print("error", type(error).__name__, error)
        connection.close()
        continue
    took.append(time.monotonic() - began)
    if made != last:
        print(f"change {time.time():.3f} {made}", flush=True)
        changes += last is not None
        last = made
    time.sleep(0.002)
took.sort()
print(f"answers={len(took)}\nerrors={errors}\nchanges={changes}")
if took:
    print(f"p99={took[len(took) * 99 // 100] * 1000:.1f}\nlongest={took[-1] * 1000:.1f}")
