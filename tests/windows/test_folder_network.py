"""Installations in a folder, put together from the real wheels for Windows, by ``check --root``.

The wheels are kept where TORCHDOCTOR_WHEELS says, else in ``.cache/wheels``; those that are not
there are downloaded (2 GB).
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.windows.make_facts import Wheel, get
from torchdoctor.cli import main

pytestmark = pytest.mark.network

ROOT = Path(__file__).parents[2]
WHEELS = Path(os.environ.get("TORCHDOCTOR_WHEELS") or ROOT / ".cache" / "wheels")
PYTHONS = {"14.27.29016": "3.8", "14.29.30133": "3.8", "14.51.36231": "3.12"}
VC = {"14.29": "14.29.30133", "14.34": "14.34.31931", "14.44": "14.44.35112"}
MIX = {"PyQt6-Qt6 6.5.3": "PyQt6", "pyarrow 17.0.0": "pyarrow"}


def members(name: str, version: str) -> zipfile.ZipFile:
    WHEELS.mkdir(parents=True, exist_ok=True)
    wheel = Wheel(name, version, (), PYTHONS.get(version, "3.11"))
    return zipfile.ZipFile(get(wheel, WHEELS))


def unpack(archive: zipfile.ZipFile, to: Path, wanted: Callable[[str], bool]) -> list[str]:
    names = [n for n in archive.namelist() if wanted(n) and not n.endswith("/")]
    for name in names:
        archive.extract(name, to)
    return names


def flat(archive: zipfile.ZipFile, to: Path, wanted: Callable[[str], bool]) -> None:
    to.mkdir(parents=True, exist_ok=True)
    for name in archive.namelist():
        if wanted(name):
            (to / name.rpartition("/")[2]).write_bytes(archive.read(name))


def installation(root: Path, torch: str, vc: str | None) -> Path:
    """Put a Windows with Python 3.11, torch and a runtime together; return its site-packages."""
    site = root / "Python311/Lib/site-packages"
    system32 = root / "Windows/System32"
    system32.mkdir(parents=True)
    if vc:
        with members("msvc-runtime", VC[vc]) as archive:
            flat(archive, system32, lambda n: n.lower().endswith(".dll"))
    with members("panda3d", "1.10.16") as archive:
        own = ("python311.dll", "vcruntime140.dll")
        flat(archive, root / "Python311", lambda n: n.lower().endswith(own))
    with members("torch", torch) as archive:
        kept = unpack(
            archive,
            site,
            lambda n: (
                (n.startswith("torch/lib/") and n.endswith(".dll"))
                or n.startswith(("torch/_C.", "torch/version.py"))
                or n.endswith(("/METADATA", "/WHEEL", "/RECORD"))
            ),
        )
    record = next(site.glob("torch-*.dist-info/RECORD"))
    lines = record.read_text("utf-8").splitlines()
    record.write_text("\n".join(x for x in lines if x.rsplit(",", 2)[0] in kept) + "\n")
    return site


def judged(root: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    names = "vc-runtime,import-order,dll-path,dll-closure,stale-dll,torch-files"
    main(["check", "--root", str(root), "--only", names, "--format", "json"])
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def errors(said: dict[str, Any]) -> list[str]:
    return [f["name"] for f in said["findings"] if f["severity"] == "error"]


MATRIX = [
    ("2.3.0", "14.44", "mkl-dll-not-found", "WinError 126 naming shm.dll", "Install mkl"),
    ("2.4.0", "14.44", "libomp140-missing", "WinError 126 naming fbgemm.dll", "torch 2.4.1"),
    ("2.4.1", None, "vcredist-missing", "WinError 126 naming asmjit.dll", "Visual C++"),
    ("2.4.1", "14.29", None, "", ""),
    ("2.9.1", None, "vcredist-missing", "WinError 126 naming c10.dll", "Visual C++"),
    ("2.9.1", "14.34", "vcredist-too-old", "WinError 1114 naming c10.dll", "Visual C++"),
    ("2.9.1", "14.44", None, "", ""),
    ("2.14.1", "14.34", "vcredist-too-old", "WinError 1114 naming c10.dll", "Visual C++"),
    ("2.14.1", "14.44", None, "", ""),
]


@pytest.mark.parametrize(("torch", "vc", "name", "number", "first"), MATRIX)
def test_real_files_give_the_answer_of_their_facts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    torch: str,
    vc: str | None,
    name: str | None,
    number: str,
    first: str,
) -> None:
    installation(tmp_path, torch, vc)
    said = judged(tmp_path, capsys)
    assert errors(said) == ([name] if name else [])
    if name:
        assert number in said["findings"][0]["summary"]
        assert first in said["plan"][0]["title"]


@pytest.mark.parametrize(("wheel", "package"), MIX.items())
def test_a_carrier_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wheel: str, package: str
) -> None:
    site = installation(tmp_path, "2.9.1", "14.44")
    with members(*wheel.split()) as archive:
        unpack(archive, site, lambda n: n.lower().endswith("/msvcp140.dll"))
    said = judged(tmp_path, capsys)
    assert not errors(said)
    (note,) = said["findings"]
    assert note["name"] == "import-order-dll-conflict"
    assert note["summary"].startswith(f"{package} brings an older runtime")


def test_real_files_that_are_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = installation(tmp_path, "2.9.1", "14.44")
    cpu = site / "torch/lib/torch_cpu.dll"
    whole = cpu.read_bytes()
    cpu.write_bytes(whole[: len(whole) // 2])
    assert errors(judged(tmp_path, capsys)) == ["torch-files-corrupt"]
    cpu.unlink()
    assert errors(judged(tmp_path, capsys)) == ["torch-files-missing"]
    cpu.write_bytes(whole)
    with members("torch", "2.4.1") as archive:
        (site / "torch/lib/c10.dll").write_bytes(archive.read("torch/lib/c10.dll"))
    assert errors(judged(tmp_path, capsys)) == ["torch-files-corrupt"]
