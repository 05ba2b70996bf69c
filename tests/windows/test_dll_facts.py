from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.windows.machines import facts
from tests.windows.writer import Dll, write
from windows import dll_facts, pe
from windows.dll_facts import DllFacts, Need, NotFacts, OnDisk, hashed

WHOLE = DllFacts(
    name="c10.dll",
    size=12,
    broken="cut",
    machine="arm64",
    linker=(14, 42),
    version=(14, 44, 35211, 0),
    signed=True,
    size_of_image=4096,
    strings={"ProductName": "x"},
    needs=(Need("MSVCP140.dll", ("_Mtx_lock",), (3,), (7, 9)), Need("KERNEL32.dll")),
    delayed=(Need("nvcuda.dll", ("cuInit",)),),
    exports=frozenset({1, 2, 0xFFFFFFFF}),
    ordinals=((1, 5), (9, 9)),
    damage=("exports: cut",),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.mark.parametrize("known", [WHOLE, DllFacts("a.dll"), DllFacts("")])
def test_facts_come_back_from_json_as_they_went(known: DllFacts) -> None:
    assert dll_facts.from_json(json.loads(json.dumps(dll_facts.to_json(known)))) == known


@given(st.sampled_from(sorted(dll_facts.to_json(WHOLE))), JSON)
@settings(max_examples=400)
def test_facts_with_anything_wrong_in_them_are_refused_or_read(key: str, value: object) -> None:
    spoiled = {**dll_facts.to_json(WHOLE), key: value}
    with contextlib.suppress(NotFacts):
        assert isinstance(dll_facts.from_json(spoiled), DllFacts)


@given(JSON)
def test_anything_else_is_no_facts(value: object) -> None:
    with pytest.raises(NotFacts):
        dll_facts.from_json(value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", None),
        ("size", -1),
        ("size", True),
        ("size", 1 << 70),
        ("version", "14.x"),
        ("version", "1.2.3.4.5"),
        ("version", "999999"),
        ("linker", [14]),
        ("linker", [1, 2, 3]),
        ("exports", "?"),
        ("exports", "AAA="),
        ("exports", 5),
        ("ordinals", [[1]]),
        ("ordinals", [5]),
        ("needs", [{}]),
        ("needs", [{"dll": "a.dll", "names": [5]}]),
        ("needs", "text"),
        ("strings", {"a": 5}),
        ("strings", []),
        ("name", "x" * 100_000),
    ],
)
def test_wrong_facts_are_refused(key: str, value: object) -> None:
    with pytest.raises(NotFacts):
        dll_facts.from_json({**dll_facts.to_json(WHOLE), key: value})


def test_what_a_file_lacks_is_told_by_name_ordinal_and_hash() -> None:
    source = DllFacts("a.dll", exports=frozenset({hashed("there"), 7}), ordinals=((1, 3), (9, 9)))
    need = Need("a.dll", ("there", "gone"), (2, 4, 9), (7, 8))
    assert source.lacks(need) == ("gone", "~00000008", "#4")


def test_a_file_that_offers_all_lacks_nothing() -> None:
    data = write(Dll(exports=["f", "g"], nameless=1, base=5))
    source = dll_facts.of(pe.parse(data), "a.dll")
    assert source.lacks(Need("a.dll", ("f", "g"), (5, 6, 7))) == ()
    assert source.lacks(Need("a.dll", (), (8,))) == ("#8",)


def test_small_facts_judge_as_whole_ones_do() -> None:
    long = "?" + "x" * 60
    source = dll_facts.of(pe.parse(write(Dll(exports=["f", long, "unasked"]))), "a.dll")
    user = dll_facts.of(pe.parse(write(Dll(imports={"a.dll": ["f", long, long + "y"]}))), "b.dll")
    offers = frozenset(map(hashed, ("f", long)))
    small = dll_facts.small(user)
    assert small.needs[0].names == ("f",)
    lacking = dll_facts.small(source, offers=offers).lacks(small.needs[0])
    assert lacking == (f"~{hashed(long + 'y'):08x}",)


def test_a_file_that_ends_too_early_is_broken_and_a_whole_one_is_not(tmp_path: Path) -> None:
    data = write(Dll(exports=["f"]))
    (tmp_path / "cut.dll").write_bytes(data[:-1])
    (tmp_path / "whole.dll").write_bytes(data)
    assert (
        dll_facts.read(str(tmp_path / "cut.dll")).broken
        == "it ends at 1,535 of at least 1,536 bytes"
    )
    assert dll_facts.read(str(tmp_path / "whole.dll")).broken is None


def test_a_file_without_its_certificate_still_loads() -> None:
    data = write(Dll(certificate=b"x" * 64))
    assert dll_facts.of(pe.parse(data[:-10]), "a.dll").broken is None


@pytest.mark.parametrize("data", [b"", b"no DLL"])
def test_a_file_that_is_no_dll_has_facts_all_the_same(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.dll"
    path.write_bytes(data)
    found = dll_facts.read(str(path))
    assert (found.name, found.size, bool(found.broken)) == ("bad.dll", len(data), True)


def test_a_folder_is_known_by_lower_case_names_and_read_when_asked(tmp_path: Path) -> None:
    (tmp_path / "MSVCP140.dll").write_bytes(write(Dll(version=(14, 44, 0, 0))))
    (tmp_path / "_C.pyd").write_bytes(write(Dll()))
    (tmp_path / "readme.txt").touch()
    files = OnDisk(str(tmp_path))
    assert sorted(files) == ["_c.pyd", "msvcp140.dll"]
    assert len(files) == 2
    known = files["msvcp140.dll"]
    assert known is not None
    assert (known.name, known.version) == ("MSVCP140.dll", (14, 44, 0, 0))
    assert files["msvcp140.dll"] is known


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert not OnDisk(str(tmp_path / "none"))


def test_a_file_that_cannot_be_opened_is_there_without_facts(tmp_path: Path) -> None:
    (tmp_path / "gone.dll").symlink_to(tmp_path / "nowhere")
    files = OnDisk(str(tmp_path))
    assert "gone.dll" in files
    assert files["gone.dll"] is None


def test_one_name_spelled_twice_is_one_file(tmp_path: Path) -> None:
    for name in ("A.dll", "a.dll"):
        (tmp_path / name).write_bytes(write(Dll(exports=[name[:1]])))
    files = OnDisk(str(tmp_path))
    assert len(files) >= 1
    known = files["a.dll"]
    assert known is not None
    assert known.name in {"A.dll", "a.dll"}


@pytest.mark.parametrize("kind", ["torch", "runtime", "carriers", "companions", "others"])
def test_the_committed_facts_are_whole(kind: str) -> None:
    for files in facts(kind).values():
        assert files
        for file in files.values():
            assert file.machine == "x64"
            assert not file.broken
            assert not file.damage
