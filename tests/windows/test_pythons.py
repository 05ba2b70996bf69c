"""A Python that the torch beside it is not for: too old, too new, 32-bit, of the Store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.windows import disk
from torchdoctor.cli import main

STORE = (
    "Program Files/WindowsApps/PythonSoftwareFoundation.Python.3.11_3.11.2544.0_x64__qbz5n2kfra8p0"
)


def judged(root: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    """Return the findings of the installation at *root* by name, in their order."""
    main(["check", "--root", str(root), "--format", "json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return {finding["name"]: finding for finding in findings}


def machine(root: Path, folder: str = "Python311", **python: Any) -> None:
    """Put torch for Python 3.11 and a Python into *folder* below *root*."""
    disk.put(root / "Windows/System32", disk.runtime(disk.NEW))
    disk.python(root / folder, **python)
    disk.package(root / folder / "Lib/site-packages")


@pytest.mark.parametrize("minor", [8, 10, 12, 14])
def test_a_python_too_old_or_too_new_for_the_installed_torch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], minor: int
) -> None:
    machine(tmp_path, "Python", minor=minor)
    found = judged(tmp_path, capsys)
    assert next(iter(found)) == "wrong-interpreter"
    assert (
        f"is built for Python 3.11; Python 3.{minor} cannot load it"
        in found["wrong-interpreter"]["summary"]
    )


def test_the_python_that_torch_was_built_for_is_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine(tmp_path, "Python")
    assert not judged(tmp_path, capsys)


def test_a_32_bit_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine(tmp_path, machine="x86")
    found = judged(tmp_path, capsys)
    assert next(iter(found)) == "python-32bit"
    assert "32-bit" in found["python-32bit"]["summary"]


def test_32_bit_files_elsewhere_do_not_make_the_python_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine(tmp_path)
    disk.python(tmp_path / "Python311-32", machine="x86")
    disk.put(tmp_path / "Windows/SysWOW64", disk.runtime(disk.OLD))
    assert not judged(tmp_path, capsys)


def test_the_python_of_the_store_is_told_and_is_no_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine(tmp_path, STORE)
    found = judged(tmp_path, capsys)
    assert [(name, finding["severity"]) for name, finding in found.items()] == [
        ("store-python", "note")
    ]


def test_another_folder_of_the_store_is_not_its_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine(tmp_path, "Program Files/WindowsApps/Publisher.Editor_1.0_x64__8wekyb3d8bbwe")
    assert not judged(tmp_path, capsys)
