from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.windows import mutate, oracle
from tests.windows.writer import HEADERS, SECTION, Dll, write
from windows import dll_facts, pe
from windows.pe import DamagedPe, Import, NotPe, Pe

NAMES = st.text("abcxyzABCXYZ0123456789_?@$", min_size=1, max_size=60)
SYMBOLS = st.lists(st.one_of(NAMES, st.integers(1, 0xFFFF)), min_size=1, max_size=8)
IMPORTS = st.dictionaries(st.from_regex(r"[a-z0-9_]{1,12}\.dll", fullmatch=True), SYMBOLS)
FOUR = st.tuples(*[st.integers(0, 0xFFFF)] * 4)
DLLS = st.builds(
    Dll,
    machine=st.sampled_from(["x64", "x86", "arm64"]),
    linker=st.tuples(st.integers(0, 255), st.integers(0, 255)),
    subsystem=st.integers(1, 16),
    subsystem_version=st.tuples(st.integers(0, 99), st.integers(0, 99)),
    characteristics=st.sampled_from([0x2022, 0x22]),
    checksum=st.integers(0, 0xFFFFFFFF),
    imports=IMPORTS,
    delayed=IMPORTS,
    delayed_by_address=st.booleans(),
    exports=st.lists(NAMES, unique=True),
    nameless=st.integers(0, 5),
    base=st.integers(1, 1000),
    version=st.none() | FOUR,
    certificate=st.binary(max_size=40),
    zeros=st.integers(0, 0x3000),
)


def put(data: bytes, place: int, *numbers: int) -> bytes:
    """Return *data* with *numbers* of four bytes at *place*."""
    new = struct.pack(f"<{len(numbers)}I", *numbers)
    return data[:place] + new + data[place + len(new) :]


def directory(index: int) -> int:
    """Return where the data directory *index* of a 64-bit file is."""
    return 0x40 + 24 + 112 + 8 * index


# ---- against pefile ---------------------------------------------------------------------------


@given(DLLS)
@settings(deadline=None, max_examples=12)
def test_a_file_says_what_pefile_says_of_it(dll: Dll) -> None:
    data = write(dll)
    assert pe.parse(data) == oracle.read(data=data)


@pytest.mark.parametrize("data", mutate.SEEDS)
def test_the_files_that_are_spoiled_elsewhere_are_read_as_pefile_reads_them(data: bytes) -> None:
    assert pe.parse(data) == oracle.read(data=data)
    assert not pe.parse(data).damage


def test_more_symbols_than_pefile_reads_without_help_are_all_read() -> None:
    many = [f"name{i:05}" for i in range(9000)]
    found = pe.parse(write(Dll(imports={"a.dll": many}, exports=many)))
    assert found.imports == (Import("a.dll", tuple(many)),)
    assert found.exports == frozenset(many)


def test_a_name_longer_than_pefile_reads_without_help_is_whole() -> None:
    name = "?" + "x" * 5000
    assert pe.parse(write(Dll(exports=[name], imports={"a.dll": [name]}))).exports == {name}


# ---- what is in it ----------------------------------------------------------------------------


def test_a_file_on_disk_is_read_as_its_bytes_are(tmp_path: Path) -> None:
    path = tmp_path / "made.dll"
    path.write_bytes(mutate.SEEDS[0])
    assert pe.read(path) == pe.parse(mutate.SEEDS[0])


def test_names_and_ordinals_keep_the_order_of_the_file() -> None:
    found = pe.parse(write(Dll(imports={"b.dll": ["z", 7, "a", 3], "a.dll": [1]})))
    assert found.imports == (Import("b.dll", ("z", "a"), (7, 3)), Import("a.dll", (), (1,)))


def test_delay_imports_are_kept_apart() -> None:
    found = pe.parse(write(Dll(imports={"a.dll": ["f"]}, delayed={"b.dll": ["g"]})))
    assert (found.imports, found.delayed) == (
        (Import("a.dll", ("f",)),),
        (Import("b.dll", ("g",)),),
    )


def test_exports_have_names_ordinals_and_forwards() -> None:
    found = pe.parse(write(Dll(exports=["f"], nameless=2, base=10, forwards={"g": "OTHER.g"})))
    assert found.exports == {"f", "g"}
    assert found.ordinals == {10, 11, 12, 13}
    assert found.forwards == {"g": "OTHER.g"}


def test_the_version_has_numbers_and_strings() -> None:
    strings = {"ProductName": "Visual Studio®", "Empty": "", "FileVersion": "14.44"}
    version = pe.parse(write(Dll(version=(14, 44, 35211, 0), strings=strings))).version
    assert version == pe.Version((14, 44, 35211, 0), (14, 44, 35211, 0), strings)


def test_strings_without_fixed_numbers_are_read() -> None:
    version = pe.parse(write(Dll(strings={"ProductName": "x"}))).version
    assert version == pe.Version(None, None, {"ProductName": "x"})


def test_a_file_without_version_has_none() -> None:
    assert pe.parse(write(Dll())).version is None


def test_a_signed_file_is_told_from_an_unsigned_one() -> None:
    assert pe.parse(write(Dll(certificate=b"x" * 16))).signed
    assert not pe.parse(write(Dll())).signed


@pytest.mark.parametrize("lost", [1, 0x200, 0x1FF])
def test_a_file_that_lost_its_end_is_truncated(lost: int) -> None:
    whole = write(Dll(exports=["f"]))
    found = pe.parse(whole[:-lost])
    assert found.truncated
    assert found.sections_end == len(whole)


def test_a_whole_file_is_not_truncated_and_neither_is_one_with_something_after_it() -> None:
    assert not pe.parse(write(Dll())).truncated
    assert not pe.parse(write(Dll()) + b"more").truncated


def test_a_file_that_lost_its_certificate_is_truncated_though_its_sections_are_whole() -> None:
    whole = write(Dll(certificate=b"x" * 64))
    found = pe.parse(whole[:-32])
    assert found.truncated
    assert found.size >= found.sections_end


def test_tables_that_are_cut_off_leave_the_headers_and_say_so() -> None:
    whole = write(Dll(imports={"a.dll": ["f"]}, exports=["g"], version=(1, 2, 3, 4)))
    found = pe.parse(whole[:HEADERS])
    assert found.machine == "x64"
    assert [text.partition(":")[0] for text in found.damage] == ["imports", "exports", "version"]


SECTION_ROW = 0x40 + 24 + 240


def test_imports_without_a_lookup_table_are_read_from_the_other() -> None:
    data = write(Dll(imports={"a.dll": ["f", 3]}))
    row = HEADERS + struct.unpack_from("<I", data, directory(1))[0] - SECTION
    data = put(data, row, 0)
    assert pe.parse(data).imports == (Import("a.dll", ("f",), (3,)),)
    assert pe.parse(data) == oracle.read(data=data)


def test_a_resource_of_another_kind_is_no_version() -> None:
    data = write(Dll(version=(1, 2, 3, 4)))
    root = HEADERS + struct.unpack_from("<I", data, directory(2))[0] - SECTION
    assert pe.parse(put(data, root + 16, 3)).version is None


def test_the_headers_are_part_of_the_image() -> None:
    data = write(Dll(imports={"a.dll": ["f"]}))
    row = HEADERS + struct.unpack_from("<I", data, directory(1))[0] - SECTION
    assert pe.parse(put(data, row + 12, 0x40)).imports == (Import("PE", ("f",)),)


def test_a_section_starts_where_the_loader_rounds_its_place_down_to() -> None:
    whole = write(Dll(imports={"a.dll": ["f"]}))
    data = put(whole, SECTION_ROW + 20, HEADERS + 5)
    assert pe.parse(data).imports == pe.parse(whole).imports


def test_a_section_that_is_nowhere_in_the_file_is_zeros() -> None:
    data = put(write(Dll(imports={"a.dll": ["f"]})), SECTION_ROW + 20, 0)
    assert pe.parse(data).imports == ()
    assert not pe.parse(data).damage


# ---- what is no PE file -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [b"", b"PK\x03\x04" + b"\0" * 100, b"\x7fELF", b"M", b"<html>", b"MZ" + b"\0" * 100],
)
def test_something_else_is_no_pe_file(data: bytes) -> None:
    with pytest.raises(NotPe):
        pe.parse(data)


@pytest.mark.parametrize("size", [2, 0x3F, 0x40, 0x44, 0x57, 0x58, 0x100, 0x150])
def test_cut_headers_are_damage(size: int) -> None:
    with pytest.raises(DamagedPe):
        pe.parse(write(Dll())[:size])


def test_every_cut_of_a_file_is_read_or_refused() -> None:
    for data in mutate.SEEDS:
        for size in range(0, len(data), 7):
            outcome(data[:size])


def test_an_empty_file_is_no_pe_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.dll"
    path.touch()
    with pytest.raises(NotPe, match="empty"):
        pe.read(path)


def test_a_folder_is_no_pe_file(tmp_path: Path) -> None:
    with pytest.raises(NotPe, match="not a file"):
        pe.read(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such pipes on Windows")
def test_a_pipe_is_no_pe_file_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.dll")
    with pytest.raises(NotPe, match="not a file"):
        pe.read(tmp_path / "pipe.dll")


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pe.read(tmp_path / "none.dll")


# ---- hostile ones -----------------------------------------------------------------------------


class Bounded(bytes):
    """The bytes of a file, which tell a read before their start or beyond their end as a fault."""

    def __getitem__(self, key: Any) -> Any:
        ends = (key.start or 0, key.stop) if isinstance(key, slice) else (key, key + 1)
        assert 0 <= ends[0] <= ends[1] <= len(self), key
        return super().__getitem__(key)

    def find(self, sub: Any, start: Any = 0, stop: Any = None, /) -> int:
        assert 0 <= start <= stop <= len(self), (start, stop)
        return super().find(sub, start, stop)


def outcome(data: bytes) -> Pe | None:
    """Return what *data* says; None when it is refused. Anything else is a fault of the reader."""
    try:
        found = pe.parse(Bounded(data))  # struct.unpack_from tells it by itself
    except (NotPe, DamagedPe):
        return None
    facts = dll_facts.of(found, "made.dll")
    assert dll_facts.from_json(dll_facts.to_json(facts)) == facts
    return found


def test_a_resource_directory_that_points_at_itself_ends() -> None:
    data = write(Dll(version=(1, 2, 3, 4)))
    start = HEADERS + struct.unpack_from("<I", data, directory(2))[0] - SECTION
    found = outcome(put(data, start + 20, 0x80000000))
    assert found is not None
    assert found.version is None or found.damage


def overlapping(names: int) -> bytes:
    """Return a file whose *names* imports all start in one text that has no end."""
    text = b"A" * names * 8
    at = SECTION + 0x100
    thunks = struct.pack(f"<{names + 1}Q", *(at + i for i in range(names)), 0)
    table = at + len(text)
    rows = table + len(thunks)
    body = b"a.dll\0".ljust(0x100, b"\0") + text + thunks
    body += struct.pack("<10I", table, 0, 0, SECTION, table, 0, 0, 0, 0, 0)
    data = write(Dll())
    data = put(data, directory(1), rows, 40)
    data = put(data, SECTION_ROW + 8, len(body), SECTION, len(body), HEADERS)
    return data[:HEADERS] + body


def test_names_that_overlap_do_not_take_time_that_grows_with_the_square() -> None:
    found = outcome(overlapping(20_000))  # all of them would be 3 GB
    assert found is not None
    assert found.damage == ("imports: its names overlap",)


def test_lists_that_overlap_are_not_read_again_and_again() -> None:
    rows, thunks = 5000, 20_000
    table = SECTION + 0x100
    body = b"a.dll\0".ljust(0x100, b"\0")
    body += struct.pack(f"<{thunks}Q", *[1 << 63 | 5] * (thunks - 1), 0)
    start = SECTION + len(body)
    body += struct.pack("<5I", table, 0, 0, SECTION, table) * rows + b"\0" * 20
    data = write(Dll())
    data = put(data, directory(1), start, 20 * rows)
    data = put(data, SECTION_ROW + 8, len(body), SECTION, len(body), HEADERS)
    found = outcome(data[:HEADERS] + body)
    assert found is not None
    assert found.damage == ("imports: its lists overlap",)


@pytest.mark.parametrize("count", [5, 0x10000, 0xFFFFFFFF])
def test_more_exports_than_the_file_has_room_for_are_damage(count: int) -> None:
    data = write(Dll(exports=["f", "g"]))
    start = HEADERS + struct.unpack_from("<I", data, directory(0))[0] - SECTION
    found = outcome(put(data, start + 24, count * 1000 & 0xFFFFFFFF))
    assert found is not None
    assert found.damage


@given(st.integers(0, 2**63))
@settings(max_examples=400, deadline=None)
def test_a_spoiled_file_is_read_or_refused(seed: int) -> None:
    outcome(mutate.spoiled(random.Random(seed)))  # noqa: S311 - a test wants it repeatable


@given(st.binary(max_size=3000))
@settings(deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    outcome(b"MZ" + data)


def test_a_read_outside_of_the_file_is_told_by_the_bytes_that_the_tests_hand_out() -> None:
    data = Bounded(b"MZ")
    assert (data[0:2], data.find(b"Z", 0, 2)) == (b"MZ", 1)
    for wrong in (slice(0, 3), slice(-1, 2), 2):
        with pytest.raises(AssertionError):
            data[wrong]
    with pytest.raises(AssertionError):
        data.find(b"Z", 0, 3)


@pytest.mark.slow
def test_a_hundred_thousand_spoiled_files_are_read_or_refused_each_in_under_50_ms() -> None:
    rng = random.Random(20261129)  # noqa: S311 - a test wants it repeatable
    read, longest = 0, 0.0
    for _ in range(100_000):
        data = mutate.spoiled(rng)
        start = time.process_time()
        read += outcome(data) is not None
        if (spent := time.process_time() - start) > 0.05:  # or was it the collector of garbage?
            start = time.process_time()
            outcome(data)
            spent = time.process_time() - start
            assert spent < 0.05
        longest = max(longest, spent)
    print(f"{read} read, the longest took {1000 * longest:.1f} ms")  # noqa: T201 - asked for
    assert 20_000 < read < 99_000  # else the spoiling is too weak or too strong to say anything
