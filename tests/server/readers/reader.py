# How Python reads request targets: a line of hex in, a line of `name=hex` out for each.
import http.server
import io
import posixpath
import sys
import urllib.parse


class Server(http.server.SimpleHTTPRequestHandler):
    """Reads a request line as a server does, without a connection."""

    def __init__(self, target):
        self.raw_requestline = b"GET " + target + b" HTTP/1.1\r\n"
        self.rfile, self.directory = io.BytesIO(b"\r\n"), "/"
        self.is_read = self.parse_request()

    def send_error(self, *_):
        pass


for line in sys.stdin:
    target = bytes.fromhex(line.strip()).decode("latin-1")
    wsgi = urllib.parse.unquote(target.partition("?")[0], "latin-1")
    found = {"wsgi": wsgi, "normpath": posixpath.normpath(wsgi)}
    try:
        split = urllib.parse.unquote(urllib.parse.urlsplit(target).path, "latin-1")
        found |= {"urlsplit": split, "urlsplit+normpath": posixpath.normpath(split) if split else ""}
        parsed = urllib.parse.unquote(urllib.parse.urlparse(target).path, "latin-1")
        found |= {"urlparse": parsed, "urlparse+normpath": posixpath.normpath(parsed) if parsed else ""}
        found["urljoin"] = urllib.parse.urlsplit(urllib.parse.urljoin("http://h/", target)).path
        server = Server(target.encode("latin-1"))
        if server.is_read:
            file = server.translate_path(server.path).encode("utf-8", "surrogateescape").decode("latin-1")
            found |= {"http.server": urllib.parse.urlsplit(server.path).path, "http.server+translate_path": file}
    except ValueError:
        pass
    print(" ".join(f"{name}={path.encode('latin-1').hex()}" for name, path in found.items()), flush=True)
