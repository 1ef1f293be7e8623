"""Asks a server about new keys all the time, for some seconds: how answers were made, and how long they took.

fleet_watch.py URL SECONDS END: prints a line for every change of how they are made, then numbers as NAME=VALUE. Stops
early when there is a file END. Keys are new ones, so that none is denied from memory. Used by fleet_fault*.sh.
"""
import http.client, json, os, sys, time, urllib.parse

url, seconds = urllib.parse.urlparse(sys.argv[1]), float(sys.argv[2])
door = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
took, errors, changes, last, n = [], 0, 0, None, 0
end = time.monotonic() + seconds
while time.monotonic() < end and not os.path.exists(sys.argv[3]):
    n += 1
    body = json.dumps({"user": f"watch{n}", "path": "/search"})
    began = time.monotonic()
    try:
        door.request("POST", "/v1/check", body)
        answer = json.loads(door.getresponse().read())
        made = answer["limits"][0]["decided_by"] if "limits" in answer and "decided_by" in answer["limits"][0] else answer["decided_by"]
    except Exception as error:
        errors += 1
        print("error", type(error).__name__, error)
        door.close()
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
