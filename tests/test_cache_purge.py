"""The advice for a damaged wheel is carried out: the cache of the tool is really empty after it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests import wheels
from tests.checks import make
from torchdoctor.facts import Facts
from torchdoctor.model import Step
from torchdoctor.registry import load
from torchdoctor.run import run

pytestmark = pytest.mark.lab

DAMAGED = make.symptom("archive-damaged", "log", file="torch/lib/cublas.dll", kind="checksum")


class _Kept(SimpleHTTPRequestHandler):
    """Serves files that may be kept, as a package index on the net does."""

    def log_message(self, *_: object) -> None:
        pass

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield an environment with caches of its own and an index whose files may be kept."""
    place = tmp_path / "index"
    wheels.wheel(place / "files", "small", "1.0", {"small.py": "x = 1\n" * 100})
    wheels.index(place)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Kept, directory=str(place)))
    Thread(target=server.serve_forever, daemon=True).start()
    known = wheels.isolated(f"http://127.0.0.1:{server.server_address[1]}")
    without = ("PIP_NO_CACHE_DIR", "UV_NO_CACHE")
    yield {k: v for k, v in known.items() if k not in without} | {
        "PIP_TRUSTED_HOST": "127.0.0.1",  # it keeps nothing from others that speak plain http
        "PIP_CACHE_DIR": str(tmp_path / "pip cache"),
        "UV_CACHE_DIR": str(tmp_path / "uv cache"),
    }
    server.shutdown()
    server.server_close()


def advice(python: Path, installer: str) -> Step:
    here = make.interpreter(executable=str(python), installer=installer, has_pip=installer == "pip")
    facts = Facts(symptoms=(DAMAGED,), interpreter=here)
    check = load("pip_cache")
    (outcome,) = run({check.name: check}, facts)
    (step,) = outcome.findings[0].steps
    return step


def kept(folder: Path) -> list[Path]:
    """Return the files of a cache that hold what was downloaded or built."""
    if not folder.exists():
        return []
    return [p for p in folder.rglob("*") if p.is_file() and p.stat().st_size > 200]


@pytest.mark.parametrize("installer", ["pip", pytest.param("uv", marks=pytest.mark.sample)])
def test_the_cache_is_empty_once_the_advice_was_followed(
    installer: str, environ: dict[str, str], tmp_path: Path
) -> None:
    python = wheels.environment(tmp_path / "a b", pip=installer == "pip")
    cache = tmp_path / f"{installer} cache"
    pip = [str(python), "-m", "pip", "install", "--quiet", "small"]
    uv = [wheels.UV, "pip", "install", "--quiet", "--python", str(python), "small"]
    wheels.run(pip if installer == "pip" else uv, environ)
    assert kept(cache), "nothing was kept, so nothing is shown"
    step = advice(python, installer)
    assert step.deletes
    assert installer in step.title
    for line in step.commands.bash:
        wheels.run(line, environ)
    assert not kept(cache)


def test_the_command_for_pip_is_none_that_uv_knows(tmp_path: Path) -> None:
    (line,) = advice(tmp_path / "python", "uv").commands.bash
    assert line == "uv cache clean"
    environ = dict(os.environ) | {"UV_CACHE_DIR": str(tmp_path / "none")}
    wrong = [wheels.UV, "pip", "cache", "purge"]
    done = subprocess.run(wrong, env=environ, capture_output=True, check=False)
    assert done.returncode != 0
