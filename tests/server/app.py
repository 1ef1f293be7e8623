# The application behind a gateway, for the tests of gateways: it answers with the request that it received.
#
# Prints its port, then serves until it is ended. Each answer has the method, the path, the bytes of the body and the
# headers that came, one a line. It also has a header of its own, so a test sees that the headers of both sides arrive.
import http.server


class App(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def answer(self):
        body = self.body()
        told = [f"app {self.command} {self.path} {len(body)}"] + [f"> {k.lower()}: {v}" for k, v in self.headers.items()]
        text = ("\n".join(told) + "\n").encode()
        self.send_response(403 if self.path.startswith("/forbidden") else 200)
        self.send_header("X-App", "yes")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), App)
print(server.server_port, flush=True)
server.serve_forever()
