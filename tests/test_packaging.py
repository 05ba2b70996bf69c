"""Every folder of modules is named in pyproject.toml, so it reaches the wheel."""

from __future__ import annotations

import sys
from pathlib import Path

import torchdoctor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAPPED = {"checks": "torchdoctor/checks", "windows": "torchdoctor/windows"}


def test_every_package_is_listed() -> None:
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for name in ("torchdoctor", "checks", "windows")
        for path in (ROOT / name).rglob("__init__.py")
    }
    names = {MAPPED.get(folder, folder).replace("/", ".") for folder in folders}
    assert names == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_data_file_is_shipped() -> None:
    data = PROJECT["tool"]["setuptools"]["package-data"]
    for top in ("torchdoctor", "checks", "windows"):
        for path in (ROOT / top).rglob("*"):
            if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts:
                folder = path.parent.relative_to(ROOT).as_posix()
                package = MAPPED.get(folder, folder).replace("/", ".")
                assert any(path.match(pattern) for pattern in data.get(package, ())), path


def test_the_version_is_said_once() -> None:
    assert PROJECT["project"]["version"] == torchdoctor.__version__


def test_each_dependency_has_its_reason_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for requirement in PROJECT["project"]["dependencies"]:
        name = requirement.partition(">")[0].strip()
        assert f"| `{name}` |" in readme, name
