# A collector of traces for traces.sh: takes OTLP's JSON at /v1/traces, checks its shape, writes each span on a line.
#
# python3 collector.py FILE [STATUS|hang]: prints its port, serves until it is killed. STATUS is what it answers.
import http.server
import json
import re
import sys
import time

out, how = open(sys.argv[1], "a"), sys.argv[2] if len(sys.argv) > 2 else "200"


def value_of(value):
    (kind, inner), = value.items()
    assert kind in ("stringValue", "intValue") and isinstance(inner, str), value
    return int(inner) if kind == "intValue" else inner


def attributes_of(holder):
    return {a["key"]: value_of(a["value"]) for a in holder["attributes"]}


def check(document):
    for resource_spans in document["resourceSpans"]:
        resource = attributes_of(resource_spans["resource"])
        assert resource["service.name"] == "weir", resource
        assert resource["service.version"] and resource["service.instance.id"], resource
        for scope_spans in resource_spans["scopeSpans"]:
            assert scope_spans["scope"]["name"] == "weir"
            assert 1 <= len(scope_spans["spans"]) <= 512
            for span in scope_spans["spans"]:
                assert re.fullmatch("[0-9a-f]{32}", span["traceId"]), span
                assert re.fullmatch("[0-9a-f]{16}", span["spanId"]), span
                assert re.fullmatch("[0-9a-f]{16}", span.get("parentSpanId", "0" * 16)), span
                assert span["kind"] == 2, span
                start, end = span["startTimeUnixNano"], span["endTimeUnixNano"]
                assert isinstance(start, str) and isinstance(end, str) and int(start) <= int(end), span
                assert abs(int(start) / 1e9 - time.time()) < 3600, span
                yield dict(attributes_of(span), name=span["name"], trace=span["traceId"],
                           parent=span.get("parentSpanId", ""), status=span["status"].get("code", 0))


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if how == "hang":
            time.sleep(600)
        try:
            assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json", self.path
            lines = [json.dumps(span, sort_keys=True) for span in check(json.loads(body))]
        except Exception as error:
            lines = ["WRONG " + repr(error)]
        if how == "200":
            out.write("".join(line + "\n" for line in lines))
            out.flush()
        self.send_response(int(how))
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
