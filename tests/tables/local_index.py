"""A package index on the loopback address: JSON or HTML, metadata, ranges, and failures."""

from __future__ import annotations

import hashlib
import html
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.wheels import wheel

JSON = "application/vnd.pypi.simple.v1+json"


@dataclass
class Shelf:
    """What the index has and how it answers."""

    folder: Path
    json: bool = True
    beside: bool = False
    """Whether it serves NAME.whl.metadata, and says so on its pages."""
    ranges: bool = True
    wrong_hash: bool = False
    login: str | None = None
    """The Authorization header that it asks for."""
    fails: list[int] = field(default_factory=list)
    """Status codes of the next answers."""
    moved_to: str | None = None
    """Another place to which it redirects for wheels."""
    days: dict[str, str] = field(default_factory=dict)
    """version -> day of upload; others are of 2026-12-01."""
    yanked: set[str] = field(default_factory=set)
    address: str = ""
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path and headers of every request."""
    sent: int = 0
    """Bytes of content."""

    def add(
        self,
        name: str,
        version: str,
        tag: str = "py3-none-any",
        *,
        requires: tuple[str, ...] = (),
        cuda: str | None = None,
        padding: bytes = b"",
    ) -> Path:
        """Add a wheel; *cuda* is what torch/version.py says, *padding* makes it large."""
        files = {}
        if name == "torch":
            files["torch/version.py"] = f"__version__ = '{version}'\ncuda = {cuda!r}\n"
        path = wheel(self.folder / name, name, version, files, requires=requires, tag=tag)
        if padding:
            with zipfile.ZipFile(path, "a") as archive:
                archive.writestr("padding", padding)
        return path

    def wheels(self, project: str) -> list[Path]:
        """Return the wheels of *project*, by name."""
        return sorted((self.folder / project).glob("*.whl"))


class _Handler(BaseHTTPRequestHandler):
    shelf: Shelf

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        shelf = self.shelf
        shelf.seen.append((self.command, self.path, dict(self.headers)))
        if shelf.fails:
            self._answer(shelf.fails.pop(0), b"")
        elif shelf.login and self.headers.get("Authorization") != shelf.login:
            self._answer(401, b"")
        elif found := re.fullmatch(r"/simple/([\w-]+)/", self.path):
            self._page(found[1])
        elif found := re.fullmatch(r"/files/([\w-]+)/([\w.+-]+?\.whl)(\.metadata)?", self.path):
            self._file(shelf.folder / found[1] / found[2], beside=bool(found[3]))
        else:
            self._answer(404, b"")

    def _page(self, project: str) -> None:
        found = self.shelf.wheels(project)
        if not found:
            self._answer(404, b"")
        elif self.shelf.json:
            text = json.dumps({"name": project, "files": [self._entry(path) for path in found]})
            self._answer(200, text.encode(), JSON)
        else:
            links = "<br>\n".join(map(self._link, found))
            self._answer(200, f"<!DOCTYPE html><html>{links}</html>".encode(), "text/html")

    def _entry(self, path: Path) -> dict[str, object]:
        version = path.name.split("-")[1]
        entry: dict[str, object] = {
            "filename": path.name,
            "url": f"../../files/{path.parent.name}/{path.name}",
            "hashes": {},
            "size": path.stat().st_size,
            "upload-time": f"{self.shelf.days.get(version, '2026-12-01')}T10:00:00.000000Z",
            "yanked": version in self.shelf.yanked,
        }
        if self.shelf.beside:
            entry["core-metadata"] = {"sha256": self._digest(path)}
        return entry

    def _link(self, path: Path) -> str:
        href = html.escape(f"../../files/{path.parent.name}/{path.name}#sha256=00")
        beside = f' data-core-metadata="sha256={self._digest(path)}"' if self.shelf.beside else ""
        yanked = ' data-yanked=""' if path.name.split("-")[1] in self.shelf.yanked else ""
        return f'<a href="{href}"{beside}{yanked}>{path.name}</a>'

    def _digest(self, path: Path) -> str:
        return "0" * 64 if self.shelf.wrong_hash else hashlib.sha256(metadata(path)).hexdigest()

    def _file(self, path: Path, *, beside: bool) -> None:
        if not path.is_file() or (beside and not self.shelf.beside):
            self._answer(404, b"")
            return
        if self.shelf.moved_to:
            self.send_response(302)
            self.send_header("Location", self.shelf.moved_to + self.path)
            self.end_headers()
            return
        content = metadata(path) if beside else path.read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted and self.shelf.ranges:
            part = content[int(wanted[1]) : int(wanted[2]) + 1]
            self._answer(206, part)
        else:
            self._answer(200, content)

    def _answer(self, status: int, content: bytes, kind: str = "application/octet-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.shelf.sent += len(content)
            self.wfile.write(content)


def metadata(path: Path) -> bytes:
    """Return METADATA of the wheel at *path*."""
    with zipfile.ZipFile(path) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("/METADATA")]
        return archive.read(name)


@contextmanager
def serving(shelf: Shelf) -> Iterator[Shelf]:
    """Serve *shelf*; its address is known inside."""
    handler = type("Handler", (_Handler,), {"shelf": shelf})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        shelf.address = f"http://127.0.0.1:{server.server_address[1]}/simple"
        try:
            yield shelf
        finally:
            server.shutdown()
            thread.join()


LINUX = "manylinux_2_28_x86_64"


def fill(shelf: Shelf) -> None:
    """Put two releases of torch and what goes with them on *shelf*."""
    toolkit = "cuda-toolkit[cublas,cudart]==14.0.1; platform_system == 'Linux'"
    nccl = "nvidia-nccl-cu14==2.40.1; platform_system == 'Linux'"
    triton = "triton~=4.0.0; platform_system == 'Linux' and python_version < '3.14'"
    asks = ("filelock", toolkit, nccl, triton, "mkl==1; platform_system == 'Windows'")
    for python in ("cp312", "cp313", "cp314"):
        shelf.add("torch", "2.16.0", f"{python}-{python}-{LINUX}", requires=asks)
        newer = ("setuptools",) if python == "cp314" else ()
        shelf.add("torch", "2.15.5", f"{python}-{python}-{LINUX}", requires=("filelock", *newer))
    shelf.add("torch", "2.16.0", "cp312-cp312-win_amd64", requires=asks)
    shelf.add("torch", "2.16.0", "cp312-none-macosx_15_0_arm64", requires=asks)
    shelf.add("torch", "2.17.0rc1", f"cp312-cp312-{LINUX}", requires=asks)
    shelf.add("torchvision", "0.31.0", f"cp312-cp312-{LINUX}", requires=("torch==2.16.0",))
    shelf.add("torchvision", "0.31.0", "cp312-cp312-macosx_15_0_arm64", requires=("torch",))
    shelf.add("torchvision", "0.31.1", f"cp312-cp312-{LINUX}", requires=("torch>=2.15.5",))
    shelf.add("torchaudio", "2.12.0", f"cp312-cp312-{LINUX}", requires=("torch>=2.11",))
    shelf.add("triton", "4.0.0", f"cp312-cp312-{LINUX}")
    shelf.add(
        "cuda-toolkit",
        "14.0.1",
        requires=(
            "nvidia-cublas==14.1.*; sys_platform == 'linux' and extra == 'cublas'",
            "nvidia-cuda-runtime==14.0.9.*; sys_platform == 'linux' and extra == 'cudart'",
            "nvidia-npp==1; extra == 'npp'",
        ),
    )
    shelf.days = {"2.15.5": "2026-11-20", "0.31.1": "2026-12-20", "2.12.0": "2027-01-01"}
