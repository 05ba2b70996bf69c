from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.linux import lab
from tests.linux.lab import Library
from tests.scenarios.elf import shared_object
from torchdoctor.linux import cache, elf, objects
from torchdoctor.linux.elf import DamagedElf, NotElf

READELF = shutil.which("readelf")
DYNLOAD = Path(sysconfig.get_path("stdlib"), "lib-dynload")
REAL = sorted(DYNLOAD.glob("*.so"), key=lambda path: path.stat().st_size)
SYSTEM = [
    found
    for name in ("libc.so.6", "libstdc++.so.6", "libz.so.1", "libm.so.6", "libgcc_s.so.1")
    for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64")
    if (found := Path(folder, name)).is_file()
]
SEEDS = (
    shared_object("liba.so.1", ["libb.so.2", "libc.so.6"], "$ORIGIN/../lib:/opt"),
    shared_object("libr.so", [], "/x", run=True),
    *(path.read_bytes() for path in REAL[:4]),
)


@pytest.mark.skipif(READELF is None, reason="no readelf to compare with")
@pytest.mark.parametrize("path", [*SYSTEM, *REAL], ids=str)
def test_it_says_what_readelf_says(path: Path) -> None:
    said = subprocess.run(
        [str(READELF), "-dWV", "--dyn-syms", "-l", str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C"},
    ).stdout
    file = elf.read(path)
    assert list(file.needed) == re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", said)
    assert [file.soname] == (re.findall(r"\(SONAME\)\s+Library soname: \[(.*)\]", said) or [None])
    symbols = re.findall(
        r"(?m)^ +\d+: [0-9a-f]+ +\d+ +\w+ +(GLOBAL|WEAK|UNIQUE) +\w+ +(\w+) (\S+)", said
    )
    plain = [(bind, where, re.sub(r"@.*", "", name)) for bind, where, name in symbols]
    defined = {name for _, where, name in plain if where != "UND"}
    assert file.defined == {elf.hashed(name.encode()) for name in defined}
    undefined = {name for bind, where, name in plain if where == "UND" and bind == "GLOBAL"}
    assert set(file.undefined) <= undefined
    versions = {
        name.partition("@")[0]: re.sub(r".*@|\(.*", "", name)
        for _, where, name in symbols
        if where == "UND" and "@" in name
    }
    assert file.asked_versions == {n: v for n, v in versions.items() if n in file.undefined}
    # What is not in it, no relocation names.
    assert len(undefined - set(file.undefined)) <= 1
    stack = re.search(r"GNU_STACK +\S+ \S+ \S+ \S+ \S+ (\S+)", said)
    assert file.executable_stack is (None if stack is None else "E" in stack[1])
    needs = said.partition("Version needs section")[2]
    wanted = set(re.findall(r"Name: (\S+)  Flags: none", needs))
    assert {v for want in file.wants for v in want.versions} == wanted
    definitions = re.findall(
        r"(?m)^ +(?:0x)?[0-9a-f]+: Rev: 1 .* Cnt: \d+ +Name: (\S+)",
        said.partition("Version definition section")[2].partition("Version needs section")[0],
    )
    assert file.offers == set(definitions)
    assert not file.damage
    assert not file.truncated


def test_the_hash_of_a_name_is_that_of_the_file() -> None:
    assert elf.hashed(b"") == 5381 | 1
    assert elf.hashed(b"printf") == 0x156B2BB8 | 1  # the example of the format's description
    long = bytes(range(1, 256)) * 9
    plain = 5381
    for letter in long:
        plain = (plain * 33 + letter) & 0xFFFFFFFF
    assert elf.hashed(long) == plain | 1


@pytest.mark.skipif(lab.GCC is None, reason="no gcc to compile with")
def test_paths_and_an_executable_stack_are_read(tmp_path: Path) -> None:
    lab.build_libraries(
        (
            Library("a.so", soname="liba.so", rpath="/one:$ORIGIN"),
            Library("b.so", runpath="/two", flags=("-Wl,-z,execstack",)),
            Library(
                "c.so", defines=("f", "g"), flags=("-Wl,--hash-style=sysv", "-Wl,-z,nodefaultlib")
            ),
        ),
        tmp_path,
    )
    first, second, third = (elf.read(tmp_path / f"{name}.so") for name in "abc")
    assert (first.soname, first.rpath, first.runpath) == ("liba.so", "/one:$ORIGIN", None)
    assert (second.rpath, second.runpath, second.executable_stack) == (None, "/two", True)
    assert {elf.hashed(b"f"), elf.hashed(b"g")} <= third.defined
    assert (first.no_default, third.no_default) == (False, True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "does not start"),
        (b"MZ" + bytes(100), "does not start"),
        (b"\x7fELF", "headers are cut"),
        (b"\x7fELF\x05\x01" + bytes(60), "unknown class"),
    ],
)
def test_what_is_no_elf_file_is_said_to_be_none(content: bytes, reason: str) -> None:
    with pytest.raises((NotElf, DamagedElf), match=reason):
        elf.parse(content)


def test_a_folder_and_a_pipe_are_not_opened(tmp_path: Path) -> None:
    with pytest.raises(NotElf, match="not a file"):
        elf.read(tmp_path)


def test_a_cut_file_is_known_by_its_own_headers(tmp_path: Path) -> None:
    whole = SEEDS[-1]
    path = tmp_path / "cut.so"
    path.write_bytes(whole[: len(whole) // 2])
    facts = objects.read(str(path))
    assert facts.broken is not None
    assert f"of at least {elf.parse(whole).loads_end:,} bytes" in facts.broken
    path.write_bytes(b"<html>not found</html>")
    assert objects.read(str(path)).broken == "it does not start as a library does"


def spoiled(rng: random.Random) -> bytes:
    """Return one of SEEDS with up to a dozen things wrong in it."""
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randint(1, 12)):
        place = rng.randrange(min(len(data), rng.choice((64, 800, 1 << 20))))
        match rng.randrange(4):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                size, form = rng.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
                number = rng.choice((0, 1, len(data), (1 << 8 * size) - 1, rng.randrange(1 << 16)))
                if place + size <= len(data):
                    struct.pack_into(form, data, place, number & ((1 << 8 * size) - 1))
            case 2:
                del data[place:][rng.randrange(1, 200) :]
            case _:
                if place > 64:
                    del data[place:]
    return bytes(data)


def look_at(content: bytes) -> None:
    try:
        file = elf.parse(content)
    except (NotElf, DamagedElf):
        return
    facts = objects.of(file)
    assert objects.from_json(objects.to_json(facts)) == facts


def test_a_spoiled_file_ends_in_an_answer_or_in_our_own_error() -> None:
    rng = random.Random(1)  # noqa: S311 - the same files every time
    for _ in range(2_000):
        look_at(spoiled(rng))


@pytest.mark.slow
def test_a_hundred_thousand_spoiled_files_do() -> None:
    rng = random.Random(2)  # noqa: S311
    for _ in range(100_000):
        look_at(spoiled(rng))


@given(st.binary(max_size=300))
@settings(max_examples=200)
def test_any_bytes_after_the_magic_end_well(content: bytes) -> None:
    look_at(b"\x7fELF" + content)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
@settings(max_examples=50)
def test_facts_are_not_made_of_anything_else(value: object) -> None:
    keys = ("machine", "needed", "defined", "wants", "executable_stack", "size")
    for key in keys:
        entry = {"machine": "x86_64", key: value}
        try:
            objects.from_json(entry)
        except objects.NotFacts:
            continue
    with pytest.raises(objects.NotFacts):
        objects.from_json(value)


# ---- the cache of the loader ------------------------------------------------------------------

CACHE = Path("/etc/ld.so.cache")


@pytest.mark.skipif(lab.LDCONFIG is None or not CACHE.exists(), reason="no cache of the loader")
def test_the_cache_says_what_ldconfig_says() -> None:
    said = subprocess.run(
        [str(lab.LDCONFIG), "-p"], capture_output=True, text=True, check=True, env={"LC_ALL": "C"}
    ).stdout
    rows = re.findall(r"(?m)^\t(\S+) \(.*\) => (\S+)$", said)
    assert [(e.name, e.path) for e in cache.parse(CACHE.read_bytes())] == rows


def test_a_spoiled_cache_ends_in_an_answer_or_in_our_own_error() -> None:
    whole = CACHE.read_bytes() if CACHE.exists() else cache.MAGIC + bytes(100)
    rng = random.Random(3)  # noqa: S311
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(8):
            data[rng.randrange(min(len(data), 4000))] = rng.randrange(256)
        try:
            cache.parse(bytes(data[: rng.randrange(len(data))]))
        except cache.NotCache:
            continue
    with pytest.raises(cache.NotCache):
        cache.parse(b"nothing")
