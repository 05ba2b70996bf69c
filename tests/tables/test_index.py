"""Reading a package index: pages, names of wheels, metadata, and what an index may do wrong."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables.local_index import JSON, LINUX, Shelf, serving
from torchdoctor.model import DoctorError
from torchdoctor.tables.index import (
    File,
    Index,
    Unreadable,
    hidden,
    metadata_of,
    page,
    python_order,
    replace,
    wheel,
)

BASE = "http://127.0.0.1/simple/torch/"
Open = Callable[..., Index]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with serving(Shelf(tmp_path / "shelf")) as made:
        yield made


@pytest.fixture
def open_index(shelf: Shelf, tmp_path: Path) -> Open:
    def make(address: str | None = None, **options: object) -> Index:
        cache = tmp_path / "cache"
        return Index(address or shelf.address, cache, pause=0, **options)  # type: ignore[arg-type]

    return make


# ---- pages --------------------------------------------------------------------------------------


def test_a_json_page_tells_size_day_and_metadata() -> None:
    text = json.dumps(
        {
            "files": [
                {
                    "filename": "torch-2.15.0-cp312-cp312-win_amd64.whl",
                    "url": "../../packages/torch.whl",
                    "size": 123,
                    "upload-time": "2026-10-28T10:00:00.5Z",
                    "yanked": "broken",
                    "core-metadata": {"sha256": "ab"},
                },
                {"filename": "torch-1.whl", "url": "/t", "core-metadata": False},
                {"filename": "torch-2.whl", "url": "/u", "dist-info-metadata": True},
            ]
        }
    )
    first, second, third = page(text, JSON, BASE)
    assert first == File(
        "torch-2.15.0-cp312-cp312-win_amd64.whl",
        "http://127.0.0.1/packages/torch.whl",
        123,
        "2026-10-28",
        yanked=True,
        metadata=True,
        metadata_sha256="ab",
    )
    assert (second.metadata, second.yanked, second.day) == (False, False, None)
    assert (third.metadata, third.metadata_sha256) == (True, None)


def test_an_html_page_tells_what_html_can() -> None:
    text = """<!DOCTYPE html><html><body><a href="/simple/">up</a>
    <a href="../../f/torch-2.15.0%2Bcpu-cp312-cp312-win_amd64.whl#sha256=00"
       data-core-metadata="sha256=ab" data-yanked="why">x</a>
    <a href="torch-1.0-py3-none-any.whl" data-dist-info-metadata="true">y</a>
    <a>nothing</a></body></html>"""
    _, first, second = page(text, "text/html; charset=utf-8", BASE)
    assert first.name == "torch-2.15.0+cpu-cp312-cp312-win_amd64.whl"
    assert first.url == "http://127.0.0.1/f/torch-2.15.0%2Bcpu-cp312-cp312-win_amd64.whl"
    assert (first.yanked, first.metadata, first.metadata_sha256) == (True, True, "ab")
    assert (second.yanked, second.metadata, second.metadata_sha256) == (False, True, None)
    assert second.url == BASE + "torch-1.0-py3-none-any.whl"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 1}', "null", '"x"', "<html>"])
def test_what_is_no_json_page_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        page(text, JSON, BASE)


def test_entries_of_another_shape_are_passed_over() -> None:
    odd = [1, None, {}, {"filename": 1, "url": "x"}, {"filename": "x", "url": None}]
    rows = [*odd, {"filename": "a.whl", "url": "a", "size": "9", "upload-time": 4}]
    assert page(json.dumps({"files": rows}), JSON, BASE) == (File("a.whl", BASE + "a"),)


@given(st.text(max_size=300), st.sampled_from([JSON, "text/html", ""]))
def test_any_text_is_a_page_or_a_value_error(text: str, kind: str) -> None:
    try:
        found = page(text, kind, BASE)
    except ValueError:
        return
    assert all(isinstance(file, File) for file in found)


# ---- names --------------------------------------------------------------------------------------


# File names on the package index
@pytest.mark.parametrize(
    ("name", "python", "platform", "glibc", "macos"),
    [
        ("torch-2.15.0-cp312-cp312-manylinux_2_28_x86_64", "3.12", "linux_x86_64", (2, 28), None),
        ("torch-2.14.1-cp314-cp314t-win_amd64", "3.14t", "win_amd64", None, None),
        ("torch-1.12.1-cp39-cp39-manylinux1_x86_64", "3.9", "linux_x86_64", (2, 5), None),
        ("torch-2.0.1-1-cp310-cp310-manylinux2014_aarch64", "3.10", "linux_aarch64", (2, 17), None),
        ("torch-2.2.2-cp312-none-macosx_10_9_x86_64", "3.12", "macos_x86_64", None, (10, 9)),
        ("torch-2.15.0-cp315-none-macosx_14_0_arm64", "3.15", "macos_arm64", None, (14, 0)),
        (
            "triton-3.6.0-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64",
            "3.12",
            "linux_x86_64",
            (2, 27),
            None,
        ),
        ("torchao-1.0-cp312-abi3-win_arm64", "3.12+", "win_arm64", None, None),
        ("cuda_toolkit-13.0.2-py2.py3-none-any", "any", None, None, None),
        ("torch-2.15.0-cp312-cp312-musllinux_1_2_x86_64", "3.12", None, None, None),
        ("torch-2.15.0-pp310-pypy310_pp73-win_amd64", None, "win_amd64", None, None),
    ],
)
def test_a_wheel_is_described_by_its_name(
    name: str,
    python: str | None,
    platform: str | None,
    glibc: tuple[int, int] | None,
    macos: tuple[int, int] | None,
) -> None:
    made = wheel(File(f"{name}.whl", ""))
    assert made is not None
    assert (made.python, made.platform, made.glibc, made.macos) == (python, platform, glibc, macos)
    assert str(made.version) == name.split("-")[1]
    assert made.build == ((1, "") if "-1-" in name else (0, ""))


@pytest.mark.parametrize("name", ["torch-2.15.0.tar.gz", "torch.whl", "torch-x-y-z-w.whl", ""])
def test_what_is_no_wheel_is_none(name: str) -> None:
    assert wheel(File(name, "")) is None


def test_pythons_sort_by_number() -> None:
    mixed = ["3.14t", "3.9", "any", "3.14", "3.10"]
    assert sorted(mixed, key=python_order) == ["any", "3.9", "3.10", "3.14", "3.14t"]


def test_metadata_is_its_version_and_its_requirements() -> None:
    text = (
        "Metadata-Version: 2.1\nName: x\nVersion: 1.0\nRequires-Dist: a\nRequires-Dist: b ;\n c\n"
    )
    assert metadata_of(text) == ("1.0", ("a", "b ; c"))
    with pytest.raises(ValueError, match="no Version"):
        metadata_of("Name: x\n\nVersion: 1.0\n")


# ---- asking -------------------------------------------------------------------------------------


def test_json_and_html_pages_give_the_same_wheels(shelf: Shelf, open_index: Open) -> None:
    shelf.add("torch", "2.16.0", f"cp312-cp312-{LINUX}")
    of_json = open_index().files("torch")
    shelf.json = False
    of_html = open_index(fresh_for=-1).files("torch")
    assert [(f.name, f.url) for f in of_json] == [(f.name, f.url) for f in of_html]
    assert (of_json[0].day, of_html[0].day) == ("2026-12-01", None)


def test_an_index_without_the_project_has_no_files_of_it(open_index: Open) -> None:
    index = open_index()
    assert index.files("torch") == ()
    assert index.files("torch") == ()
    assert index.requests == 1


def test_metadata_beside_the_wheel_is_taken_and_checked(shelf: Shelf, open_index: Open) -> None:
    shelf.beside = True
    shelf.add("torch", "2.16.0", requires=("a",))
    (file,) = open_index().files("torch")
    assert open_index().metadata(file) == ("2.16.0", ("a",))
    assert [path for _, path, _ in shelf.seen if path.endswith(".whl")] == []
    shelf.wrong_hash = True
    (file,) = open_index(fresh_for=-1).files("torch")
    with pytest.raises(Unreadable, match="sha256"):
        open_index().metadata(file)


def test_without_it_only_the_member_is_read_from_the_wheel(shelf: Shelf, open_index: Open) -> None:
    path = shelf.add("torch", "2.16.0", requires=("a",), padding=os.urandom(1 << 20))
    index = open_index()
    (file,) = index.files("torch")
    assert index.metadata(file) == ("2.16.0", ("a",))
    assert index.member(file, r"torch/version\.py").startswith("__version__")
    assert shelf.sent < path.stat().st_size / 4


def test_ranges_work_where_the_page_names_no_size(shelf: Shelf, open_index: Open) -> None:
    shelf.json = False
    shelf.add("torch", "2.16.0", requires=("a",))
    index = open_index()
    (file,) = index.files("torch")
    assert file.size is None
    assert index.metadata(file) == ("2.16.0", ("a",))


def test_an_index_that_does_not_have_metadata_is_asked_once(shelf: Shelf, open_index: Open) -> None:
    for version in ("2.16.0", "2.17.0", "2.18.0"):
        shelf.add("torch", version)
    index = open_index()
    for file in index.files("torch"):
        index.metadata(file)
    assert len([path for _, path, _ in shelf.seen if path.endswith(".metadata")]) == 1


def test_an_index_without_parts_is_unreadable(shelf: Shelf, open_index: Open) -> None:
    shelf.ranges = False
    shelf.add("torch", "2.16.0")
    (file,) = open_index().files("torch")
    with pytest.raises(Unreadable, match="serves no parts"):
        open_index().metadata(file)


@pytest.mark.parametrize("content", [b"", b"no zip at all" * 9999, b"PK\x05\x06" + b"\xff" * 18])
def test_a_wheel_that_is_none_is_unreadable(shelf: Shelf, open_index: Open, content: bytes) -> None:
    path = shelf.add("torch", "2.16.0")
    path.write_bytes(content)
    (file,) = open_index().files("torch")
    with pytest.raises(Unreadable, match=re.escape(file.name)):
        open_index().metadata(file)


def test_a_server_that_fails_is_asked_once_more(shelf: Shelf, open_index: Open) -> None:
    shelf.add("torch", "2.16.0")
    shelf.fails = [503]
    assert len(open_index().files("torch")) == 1
    shelf.fails = [503, 503]
    with pytest.raises(DoctorError, match="503"):
        open_index(fresh_for=-1).files("torch")


def test_a_refusal_is_final(shelf: Shelf, open_index: Open) -> None:
    shelf.fails = [403]
    with pytest.raises(DoctorError, match="403"):
        open_index().files("torch")
    assert len(shelf.seen) == 1


def test_an_index_that_goes_away_is_not_taken_for_a_bad_wheel(
    tmp_path: Path, open_index: Open
) -> None:
    with serving(Shelf(tmp_path / "other")) as gone:
        gone.add("torch", "2.16.0")
        index = open_index(gone.address)
        (file,) = index.files("torch")
    with pytest.raises(DoctorError, match="does not answer"):
        index.metadata(file)


def test_what_was_answered_once_is_not_asked_again(shelf: Shelf, open_index: Open) -> None:
    shelf.add("torch", "2.16.0", requires=("a",))
    (file,) = open_index().files("torch")
    open_index().metadata(file)
    before = len(shelf.seen)
    again = open_index(offline=True)
    assert again.files("torch") == (file,)
    assert again.metadata(file) == ("2.16.0", ("a",))
    assert (again.requests, len(shelf.seen)) == (0, before)
    assert again.days


def test_offline_without_an_answer_is_an_error(open_index: Open) -> None:
    with pytest.raises(DoctorError, match="not in the cache"):
        open_index(offline=True).files("torch")
    with pytest.raises(DoctorError, match="not in the cache"):
        open_index(offline=True).metadata(File("torch-1-py3-none-any.whl", f"{BASE}x"))
    with pytest.raises(Unreadable, match="not in the cache"):
        open_index(offline=True).member(File("torch-1-py3-none-any.whl", f"{BASE}x"), "x")


def test_a_damaged_cache_is_asked_again(shelf: Shelf, open_index: Open, tmp_path: Path) -> None:
    shelf.add("torch", "2.16.0")
    open_index().files("torch")
    for path in (tmp_path / "cache").iterdir():
        path.write_text("{", encoding="ascii")
    assert len(open_index().files("torch")) == 1


def test_it_says_who_asks(shelf: Shelf, open_index: Open) -> None:
    open_index().files("torch")
    (_, _, headers) = shelf.seen[0]
    assert headers["User-Agent"].startswith("torchdoctor/")
    assert headers["Accept"].startswith(JSON)


def test_a_login_goes_to_the_index_only_and_is_kept_nowhere(
    shelf: Shelf, open_index: Open, tmp_path: Path
) -> None:
    with serving(Shelf(shelf.folder)) as other:
        shelf.login = "Basic dXNlcjpzM2NyZXQ="  # user:s3cret
        shelf.moved_to = other.address.removesuffix("/simple").replace("127.0.0.1", "localhost")
        shelf.add("torch", "2.16.0", requires=("a",))
        index = open_index(shelf.address.replace("//", "//user:s3cret@"))
        (file,) = index.files("torch")
        assert index.metadata(file) == ("2.16.0", ("a",))
        assert other.seen
        assert all("Authorization" not in headers for _, _, headers in other.seen)
    kept = "".join(path.read_text(encoding="ascii") for path in (tmp_path / "cache").iterdir())
    assert "s3cret" not in kept + index.address
    assert hidden("https://user:s3cret@host/simple") == "https://host/simple"


@pytest.mark.parametrize("address", ["", "simple", "ftp://127.0.0.1/simple", "file:///simple"])
def test_only_http_is_an_index(address: str, tmp_path: Path) -> None:
    with pytest.raises(DoctorError, match="not the address"):
        Index(address, tmp_path)


def test_certificates_that_are_not_there_are_said(tmp_path: Path) -> None:
    with pytest.raises(DoctorError, match="no certificates"):
        Index("https://127.0.0.1/simple", tmp_path, certificates=str(tmp_path / "none.pem"))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "table.json"
    replace(target, "one")
    with pytest.raises(UnicodeEncodeError):
        replace(target, "two \ud800")
    assert target.read_text(encoding="utf-8") == "one"
    assert list(tmp_path.iterdir()) == [target]
