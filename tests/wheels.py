"""Small wheels, a package index over http on the loopback address, and environments to try on."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import uv

UV = uv.find_uv_bin()


def wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    *,
    requires: tuple[str, ...] = (),
    tag: str = "py3-none-any",
) -> Path:
    """Write a real wheel of *name* with *files* into *folder* and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {r}" for r in requires]
    content = {
        **files,
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    rows = []
    path = folder / f"{name.replace('-', '_')}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in content.items():
            raw = text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()
            rows.append(f"{file},sha256={digest},{len(raw)}")
            archive.writestr(file, raw)
        archive.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]) + "\n")
    return path


def torch_wheel(folder: Path, version: str, *, requires: tuple[str, ...] = ()) -> Path:
    """Write a stand-in of torch *version*, with the version.py that a real one has."""
    label = version.partition("+")[2] or "cu130"  # as the default index has it
    says = version if "+" in version else f"{version}+{label}"
    cuda = f"'{label[2:-1]}.{label[-1]}'" if label.startswith("cu") else "None"
    return wheel(
        folder,
        "torch",
        version,
        {
            "torch/__init__.py": "from torch.version import __version__\n",
            "torch/version.py": f"__version__ = '{says}'\ncuda = {cuda}\nhip = None\nxpu = None\n",
            "torch/lib/libc10.so": "a library\n" * 10,
        },
        requires=requires,
    )


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve *folder* on the loopback address; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def index(folder: Path) -> None:
    """Write the simple-index pages for the wheels in *folder*/files below *folder*."""
    projects: dict[str, list[str]] = {}
    for path in sorted((folder / "files").glob("*.whl")):
        name = re.sub(r"[-_.]+", "-", path.name.partition("-")[0]).lower()
        link = path.name.replace("+", "%2B")
        projects.setdefault(name, []).append(f'<a href="../files/{link}">{path.name}</a><br>')
    for name, links in projects.items():
        page = folder / name / "index.html"
        page.parent.mkdir(exist_ok=True)
        page.write_text("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>")


def environment(place: Path, *, pip: bool = True) -> Path:
    """Make a virtual environment of this Python at *place* and return its interpreter."""
    seed = ["--seed"] if pip else []
    run([UV, "venv", "--quiet", "--python", sys.executable, *seed, str(place)], dict(os.environ))
    if pip:  # as one that python -m venv made
        config = place / "pyvenv.cfg"
        lines = config.read_text().splitlines(keepends=True)
        config.write_text("".join(line for line in lines if not line.startswith("uv = ")))
    return place / "bin" / "python"


def run(command: list[str] | str, environ: Mapping[str, str]) -> str:
    """Run *command* (a string: by bash, as a user pastes it) and return its output."""
    words = ["bash", "-ec", command] if isinstance(command, str) else command
    done = subprocess.run(
        words,
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def isolated(default_index: str) -> dict[str, str]:
    """Return an environment in which pip and uv know only *default_index*, and no caches."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "PYTHON", "CONDA"))
    }
    return kept | {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": default_index,
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_DEFAULT_INDEX": default_index,
        "UV_NO_CONFIG": "1",
        "UV_NO_CACHE": "1",
        "PATH": f"{Path(UV).parent}{os.pathsep}{os.environ['PATH']}",
    }
