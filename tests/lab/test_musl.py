"""musl refuses the libraries of torch, and what it says is known for what it is."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.lab.recipes import base_site
from tests.scenarios.doctor import START

LOADERS = os.pathsep.join(["/lib", "/usr/lib", os.environ.get("PATH", "")])
MUSL = shutil.which(f"ld-musl-{platform.machine()}.so.1", path=LOADERS)
GLIBC = f"ld-linux-{platform.machine().replace('_', '-')}.so.2"

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(MUSL is None, reason="no loader of musl here"),
]


def of_torch(name: str) -> Path:
    """Return the path of a library of torch."""
    return base_site() / "torch" / "lib" / name


def judged(folder: Path, text: str) -> dict[str, Any]:
    """Return the report on *text*, what somebody saw."""
    (folder / "seen.log").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", START, "check", "--format", "json", "seen.log"],
        cwd=folder,
        env=environments.environ(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def said(line: list[str], where: str = "") -> str:
    """Return what a loader says of a library; *where* is LD_LIBRARY_PATH."""
    environ = {"PATH": os.defpath, "LC_ALL": "C"} | ({"LD_LIBRARY_PATH": where} if where else {})
    done = subprocess.run(line, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode, "it loads"
    return done.stderr


@pytest.mark.parametrize("name", ["libc10.so", "libtorch_python.so"])
def test_what_musl_says_of_a_library_of_torch(name: str, tmp_path: Path) -> None:
    assert MUSL
    text = said([MUSL, "--list", str(of_torch(name))])
    assert "Error loading shared library" in text
    report = judged(tmp_path, text)
    assert report["findings"][0]["name"] == "musl-libc"
    assert "musl" in report["findings"][0]["summary"]


def test_what_musl_says_where_the_libraries_of_gcc_are_there(tmp_path: Path) -> None:
    assert MUSL
    for name in ("libstdc++.so.6", "libgcc_s.so.1", GLIBC):
        found = shutil.which(name, os.F_OK, f"/lib64:/usr/lib/{platform.machine()}-linux-gnu")
        assert found, name
        shutil.copy(found, tmp_path)
    text = said([MUSL, "--list", str(of_torch("libc10.so"))], str(tmp_path))
    assert "Error relocating" in text
    assert judged(tmp_path, text)["findings"][0]["name"] == "musl-libc"


def test_what_glibc_says_is_something_else(tmp_path: Path) -> None:
    shutil.copy(of_torch("libshm.so"), tmp_path)
    code = f"import ctypes; ctypes.CDLL({str(tmp_path / 'libshm.so')!r})"
    text = said([sys.executable, "-S", "-c", code])
    assert "cannot open shared object file" in text
    names = [finding["name"] for finding in judged(tmp_path, text)["findings"]]
    assert names
    assert "musl-libc" not in names
