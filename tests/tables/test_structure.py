"""Every table: what its file must state, and how it is read."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import torchdoctor.tables
from torchdoctor.tables import load

FOLDER = Path(torchdoctor.tables.__file__).parent
MODULES = [
    "builds",
    "drivers",
    "gpus",
    "libraries",
    "nccl",
    "neighbours",
    "nvcc",
    "platforms",
    "releases",
    "rocm",
]
NAMES = sorted([*MODULES, "archs"])


@pytest.fixture(params=NAMES)
def table(request: pytest.FixtureRequest) -> Any:
    return load(request.param)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def test_a_table_is_either_generated_or_edited() -> None:
    for name in NAMES:
        found = {path.suffix for path in FOLDER.glob(f"{name}.*")} - {".py"}
        assert len(found) == 1, name


def test_a_table_states_its_schema_and_its_day(table: Any) -> None:
    assert table["schema"] == 1
    assert str(table["as_of"]) == date.fromisoformat(str(table["as_of"])).isoformat()


def test_a_table_names_its_sources(table: Any) -> None:
    assert table["source"]
    assert all(isinstance(source, str) and source for source in table["source"])


def test_a_table_names_no_private_place(table: Any) -> None:
    private = ("/work", "/tmp", "shared/", "://pypi.o", "pythonhosted", "simple-index")  # noqa: S108
    assert [text for text in strings(table) if any(part in text for part in private)] == []


def test_a_row_points_at_a_source_that_exists() -> None:
    for name in ("archs", "nccl"):
        data = load(name)
        rows = [r for b in data["torch"].values() for p in b.values() for r in p.values()]
        assert {row[-1] for row in rows} == set(range(len(data["source"])))


def test_every_release_with_builds_has_a_source_of_its_own() -> None:
    assert all(row["source"] for row in load("builds")["torch"].values())


def test_a_table_is_read_once(table: Any) -> None:
    assert any(load(name) is table for name in NAMES)


def test_an_unknown_table_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        load("no-such-table")


def test_importing_every_module_reads_no_table() -> None:
    program = (
        "import importlib\n"
        "from torchdoctor.tables import load\n"
        f"for name in {MODULES!r}: importlib.import_module('torchdoctor.tables.' + name)\n"
        "print(load.cache_info().currsize)\n"
    )
    assert child(program, FOLDER.parents[1]) == "0"


def test_tables_are_read_from_inside_a_zip_file(tmp_path: Path) -> None:
    archive = tmp_path / "doctor.pyz"
    with zipfile.ZipFile(archive, "w") as out:
        for path in FOLDER.parent.glob("*.py"):
            out.write(path, f"torchdoctor/{path.name}")
        for path in FOLDER.iterdir():
            if path.is_file():
                out.write(path, f"torchdoctor/tables/{path.name}")
    program = (
        "import json\n"
        "from torchdoctor.tables import load, releases\n"
        f"found = {{name: load(name)['schema'] for name in {NAMES!r}}}\n"
        "print(json.dumps([found, releases.newest('torch')]))\n"
    )
    assert json.loads(child(program, archive)) == [dict.fromkeys(NAMES, 1), "2.15.0"]


def child(program: str, first_on_path: Path) -> str:
    program = f"import sys\nsys.path.insert(0, {str(first_on_path)!r})\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    return done.stdout.strip()
