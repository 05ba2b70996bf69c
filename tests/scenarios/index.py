"""A package index on 127.0.0.1 in the place of the public ones: ``/pypi/`` and ``/whl/<tag>/``.

Each offers what the public one offers: the untagged builds and all dependencies on ``/pypi/``,
the builds with that local label, and dependencies, on ``/whl/<tag>/``.
"""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

LABELLED = frozenset({"torch", "torchvision", "torchaudio"})
"""Projects whose builds differ from index to index."""
PUBLIC = "https://download.pytorch.org/whl/"

Listing = Callable[[], Iterable[Path]]


@contextmanager
def serve(listing: Listing) -> Iterator[str]:
    """Serve the wheels that *listing* returns (asked anew each time); yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wheels = {path.name: path for path in listing()}
            words = [unquote(word) for word in self.path.partition("?")[0].strip("/").split("/")]
            if words[0] == "files" and words[-1] in wheels:
                self._answer(wheels[words[-1]].read_bytes(), "application/octet-stream")
            elif len(words) >= 2 and (found := _page(words, wheels)):
                self._answer(found.encode(), "text/html")
            else:
                self.send_error(404)

        def _answer(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _page(words: list[str], wheels: Iterable[str]) -> str | None:
    tag = words[1] if words[0] == "whl" else None
    project = words[-1]
    links = [
        f'<a href="/files/{quote(name)}">{html.escape(name)}</a><br>'
        for name in wheels
        if _project(name) == project and _offered(name, tag)
    ]
    return "<!DOCTYPE html><body>" + "\n".join(links) + "</body>" if links else None


def _project(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.partition("-")[0]).lower()


def _offered(name: str, tag: str | None) -> bool:
    if _project(name) not in LABELLED:
        return True
    return name.split("-", 2)[1].partition("+")[2] == (tag or "")
