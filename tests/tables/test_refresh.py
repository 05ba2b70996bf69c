"""The command that makes the table of releases again."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import torchdoctor
from tests.tables.local_index import Shelf, fill, serving
from torchdoctor.tables import load
from torchdoctor.tables.refresh import (
    configured,
    default_index,
    main,
    news,
    pip_says,
    rows_missing,
    settings,
    text_of,
)

PACKAGE = Path(torchdoctor.__file__).parent
NEWER = "torch 2.16.0 has no row in builds.json, archs.json, nccl.json: those are made by hand"


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with serving(Shelf(tmp_path / "shelf")) as made:
        fill(made)
        yield made


def refresh(shelf: Shelf, tmp_path: Path, *more: str) -> int:
    options = ["--index", shelf.address, "--cache", str(tmp_path / "cache"), "--pause", "0"]
    return main([*options, "--output", str(tmp_path / "table.json"), *more])


def test_it_writes_the_table_and_says_what_is_not_known(
    shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refresh(shelf, tmp_path) == 2
    table = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert [row["version"] for row in table["torch"]][:2] == ["2.16.0", "2.15.5"]
    assert table["torch"][2:] == load("releases")["torch"]
    said = capsys.readouterr().out
    assert f"answers are kept in {tmp_path / 'cache'}" in said
    assert "new: torch 2.16.0" in said
    assert NEWER in said
    assert "not on this index, kept as they were: torch 1.12.0, " in said


def test_the_same_cache_gives_the_same_bytes(shelf: Shelf, tmp_path: Path) -> None:
    refresh(shelf, tmp_path)
    first = (tmp_path / "table.json").read_bytes()
    asked = len(shelf.seen)
    assert refresh(shelf, tmp_path, "--offline") == 2
    assert (tmp_path / "table.json").read_bytes() == first
    assert len(shelf.seen) == asked


def test_nothing_is_written_when_the_index_fails(
    shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "table.json").write_text("as it was", encoding="utf-8")
    shelf.fails = [500, 500]
    assert refresh(shelf, tmp_path) == 2
    assert (tmp_path / "table.json").read_text(encoding="utf-8") == "as it was"
    assert "Nothing was written: the index answers 500" in capsys.readouterr().err
    assert not list(tmp_path.glob(".*"))


def test_a_place_that_cannot_be_written_is_said_before_anything_is_asked(
    shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "not" / "there.json"
    assert refresh(shelf, tmp_path, "--output", str(gone)) == 2
    assert "cannot be written here; name another file with --output" in capsys.readouterr().err
    assert shelf.seen == []


# ---- which index --------------------------------------------------------------------------------


# What pip 26.0 prints
LISTING = """\
:env:.cert='/etc/own.pem'
:env:.disable-pip-version-check='1'
download.index-url='https://example.org/download'
global.extra-index-url='https://example.org/extra'
global.index-url='https://example.org/global'
global.no-index='true'
install.timeout='60'
list.format='columns'
broken
global.odd=[unclosed
"""


def test_the_nearest_setting_of_pip_wins() -> None:
    found = settings(LISTING)
    assert found["index-url"] == "https://example.org/download"
    assert found["cert"] == "/etc/own.pem"
    assert found["no-index"] == "true"
    assert "format" not in found
    assert settings(":env:.index-url='a'\n" + LISTING)["index-url"] == "a"
    assert settings("") == {}


def test_the_default_is_what_the_help_of_pip_names() -> None:
    text = (
        "  -i, --index-url <url>  Base URL (default\n     https://example.org/simple). This should"
    )
    assert default_index(text) == "https://example.org/simple"
    assert default_index("--index-url <url> Base URL") is None


def test_this_pip_names_a_default() -> None:
    address = default_index(pip_says("download", "--help"))
    assert address is not None
    assert address.startswith("https://")


def test_pip_that_fails_says_nothing() -> None:
    assert pip_says("no-such-command") == ""


def test_some_index_is_configured() -> None:
    address, _ = configured()
    assert "://" in address


def test_the_command_asks_the_index_that_pip_is_set_to(shelf: Shelf, tmp_path: Path) -> None:
    output = tmp_path / "table.json"
    command = [sys.executable, "-m", "torchdoctor.tables.refresh", "--pause", "0"]
    done = subprocess.run(
        [*command, "--output", str(output)],
        capture_output=True,
        check=False,
        cwd=PACKAGE.parent,
        env={**os.environ, "PIP_INDEX_URL": shelf.address, "XDG_CACHE_HOME": str(tmp_path)},
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert f"Reading {shelf.address}; answers are kept in {tmp_path}" in done.stdout
    assert json.loads(output.read_text(encoding="utf-8"))["torch"][0]["version"] == "2.16.0"
    assert list((tmp_path / "torchdoctor" / "index").glob("*.json"))


# ---- the file -----------------------------------------------------------------------------------


def test_the_table_in_use_is_written_as_this_command_writes() -> None:
    text = (PACKAGE / "tables" / "releases.json").read_text(encoding="utf-8")
    assert text_of(json.loads(text)) == text


def test_news_are_new_gone_and_changed() -> None:
    before = {"torch": [{"version": "1", "a": 1}, {"version": "2"}], "torchvision": {"1": "==1"}}
    after = {
        "torch": [{"version": "3"}, {"version": "1", "a": 2}],
        "torchvision": {"1": "==2"},
        "torchaudio": {},
        "triton": ["3.9.0"],
    }
    assert news(before, after) == [
        "new: torch 3",
        "gone: torch 2",
        "changed: torch 1 (a)",
        "changed: torchvision 1 (==1 -> ==2)",
        "new: triton 3.9.0",
    ]


def test_every_known_release_has_its_hand_made_rows() -> None:
    assert rows_missing(load("releases")["torch"]) == []


def test_a_release_that_only_the_index_knows_is_unknown_to_the_rest(
    shelf: Shelf, tmp_path: Path
) -> None:
    refresh(shelf, tmp_path)
    archive = tmp_path / "doctor.pyz"
    with zipfile.ZipFile(archive, "w") as out:
        for path in [*PACKAGE.glob("*.py"), *(PACKAGE / "tables").glob("*.*")]:
            if path.name != "releases.json":
                out.write(path, path.relative_to(PACKAGE.parent))
        out.write(tmp_path / "table.json", "torchdoctor/tables/releases.json")
    program = f"""
import sys
sys.path.insert(0, {str(archive)!r})
from torchdoctor.tables import builds, gpus, nccl, releases
print(releases.newest("torch"), releases.beyond_tables("torch", "2.16.0"),
      releases.beyond_tables("torch", "2.16.1"), releases.torch_release("2.16.0").date,
      builds.builds("2.16.0", "linux_x86_64"), gpus.arch_list("2.16.0", "cu140", "linux_x86_64"),
      nccl.bundled("2.16.0", "cu140", "linux_x86_64"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "2.16.0 False True 2026-12-01 () None None"


@pytest.mark.network
def test_the_configured_index_still_tells_what_the_table_has(tmp_path: Path) -> None:
    output = tmp_path / "table.json"
    code = main(["--since", "2.14.0", "--cache", str(tmp_path / "c"), "--output", str(output)])
    assert code in {0, 2}
    table = json.loads(output.read_text(encoding="utf-8"))
    found = {row["version"]: row for row in table["torch"]}
    known = {row["version"]: row for row in load("releases")["torch"]}
    asked = ("date", "glibc", "macos", "triton", "cuda_default", "nvidia_pins", "requires")
    for version in ("2.14.0", "2.14.1", "2.15.0"):
        assert {k: found[version][k] for k in asked} == {k: known[version][k] for k in asked}
    assert set(known) <= set(found)
