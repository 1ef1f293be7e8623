# How Python reads request targets: a line of hex in, a line of `name=hex` out for each.
import posixpath
import sys
import urllib.parse

for line in sys.stdin:
    target = bytes.fromhex(line.strip()).decode("latin-1")
    wsgi = urllib.parse.unquote(target.partition("?")[0], "latin-1")
    found = {"wsgi": wsgi, "normpath": posixpath.normpath(wsgi)}
    try:
        split = urllib.parse.unquote(urllib.parse.urlsplit(target).path, "latin-1")
        found |= {"urlsplit": split, "urlsplit+normpath": posixpath.normpath(split) if split else ""}
        found["urljoin"] = urllib.parse.urlsplit(urllib.parse.urljoin("http://h/", target)).path
    except ValueError:
        pass
    print(" ".join(f"{name}={path.encode('latin-1').hex()}" for name, path in found.items()), flush=True)
