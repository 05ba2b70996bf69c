"""A bundle says what it holds and is read as the snapshot is; one that is hostile is refused."""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import torchdoctor
from tests import environments
from torchdoctor import bundle, cli, collect, inputs, plan, redact
from torchdoctor.child import Run, Stream
from torchdoctor.facts import Expectation
from torchdoctor.model import DoctorError
from torchdoctor.reading import machine
from torchdoctor.registry import all_checks
from torchdoctor.run import run
from torchdoctor.snapshot import LARGEST, MOST_PARTS, SCHEMA, Snapshot, dump

RUN = Run(("python",), "answered", stdout=Stream("hé", 3, "ab"), data={"deep": {"a": None}})
WHOLE = Snapshot("2026-11-29T12:00:00Z", {"host": RUN, "text 1 e.log": RUN}, redacted=True)
TEXT = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
MOST_MEMORY = 200
"""Megabytes."""


def packed(*files: tuple[str | zipfile.ZipInfo, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return made.getvalue()


def written(folder: Path, raw: bytes, name: str = "b.zip") -> str:
    (folder / name).write_bytes(raw)
    return str(folder / name)


# ---- what a bundle is --------------------------------------------------------------------------


def test_a_bundle_comes_back_as_the_snapshot_was(tmp_path: Path) -> None:
    assert inputs.read([written(tmp_path, bundle.pack(WHOLE))]) == WHOLE


def test_a_bundle_says_what_it_holds_and_nothing_of_when_it_was_packed() -> None:
    raw = bundle.pack(WHOLE)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        said = archive.read(bundle.INSIDE).decode()
        assert {entry.date_time[0] for entry in archive.infolist()} == {1980}
    assert "redacted" in said
    assert "\n  host " in said
    assert "a text that was added" in said
    assert raw == bundle.pack(WHOLE)


def test_the_texts_in_a_bundle_of_another_kind_are_read(tmp_path: Path) -> None:
    snapshot = inputs.read([written(tmp_path, packed(("a/error.log", TEXT), ("a/pip.txt", "x")))])
    (run,) = snapshot.probes.values()
    assert TEXT in run.stdout.text


@pytest.mark.parametrize(
    "imports", [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.lab])]
)
def test_a_bundle_gives_the_same_findings_as_the_machine_itself(
    imports: bool,  # noqa: FBT001 - which of the two
    tmp_path: Path,
) -> None:
    python = str(environments.base().root / "bin/python") if imports else sys.executable
    environ = {**os.environ, "NCCL_SOCKET_IFNAME": "eth77", "MASTER_ADDR": "10.9.8.7"}
    live = collect.collect(collect.Request(python, str(tmp_path), import_torch=imports), environ)
    sent = redact.redact(live, **redact.here(environ))
    there = inputs.read([written(tmp_path, bundle.pack(sent))])
    assert judged(there) == judged(live)
    assert "wrong-socket-ifname" in [name for name, *_ in judged(there)]


def judged(snapshot: Snapshot) -> list[tuple[object, ...]]:
    outcomes = run(all_checks(), machine.read(snapshot, Expectation()))
    found = plan.findings_of(outcomes)
    return [(f.name, f.severity, f.confidence, [e.fact for e in f.evidence]) for f in found]


def test_collect_writes_a_bundle_and_shows_what_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, file = tmp_path / "e.log", tmp_path / "b.zip"
    log.write_text(f"token=ghp_{'a1B2' * 9}\n{TEXT}\n", "utf-8")
    assert cli.main(["collect", "--no-import", "--add", str(log), "-o", str(file)]) == 0
    said = capsys.readouterr().err
    assert "Read it before you send it." in said
    assert "text 1 e.log" in said
    snapshot = inputs.read([str(file)])
    assert snapshot.redacted
    text = snapshot.probes["text 1 e.log"].stdout.text
    assert TEXT in text
    assert "a1B2" not in text


# ---- one snapshot a line -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_a_file_of_one_snapshot_a_line_is_read_where_it_has_one(name: str, tmp_path: Path) -> None:
    line = json.dumps(json.loads(dump(WHOLE)))
    assert inputs.read([written(tmp_path, f"\n{line}\n\n".encode(), name)]) == WHOLE
    zipped = written(tmp_path, packed((f"out/{name}", line)))
    assert inputs.read([zipped]) == WHOLE
    assert inputs.read([written(tmp_path, dump(WHOLE).encode(), name)]) == WHOLE


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_of_a_file_of_several_the_verb_for_them_is_named_and_takes_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = json.dumps(json.loads(dump(WHOLE)))
    file = written(tmp_path, f"{line}\n{line}\n".encode(), name)
    assert cli.main(["check", file]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith(f"use: torchdoctor compare {file}")
    assert cli.main(["compare", file, "--no-findings"]) == 0
    assert "2 machines are alike" in capsys.readouterr().out


def test_a_line_that_is_cut_off_is_no_second_machine(tmp_path: Path) -> None:
    line = json.dumps(json.loads(dump(WHOLE)))
    for content in (line[:-20], f"{line}\nand more"):
        with pytest.raises(DoctorError, match=r"cut off or damaged"):
            inputs.read([written(tmp_path, content.encode(), "a.jsonl")])


# ---- hostile ones ------------------------------------------------------------------------------


def link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("snapshot.json")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


def many_files(count: int) -> bytes:
    """Return a ZIP file with a list of *count* files, made by hand: zipfile would take minutes."""
    name = b"a.txt"
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 0, 0, len(name), 0) + name
    row = struct.pack(
        "<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0
    )
    listed = (row + name) * count
    few = min(count, 0xFFFF)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, few, few, len(listed), len(local), 0)
    return local + listed + end


def cheating() -> bytes:
    """Return a bundle that says to be small, and is not."""
    raw = packed(("snapshot.json", b"0" * (20 << 20)))
    said, less = struct.pack("<L", 20 << 20), struct.pack("<L", 100)
    return raw.replace(said, less)


def encrypted() -> bytes:
    raw = bytearray(packed(("snapshot.json", "x")))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.find(mark) + at] |= 1
    return bytes(raw)


def damaged() -> bytes:
    raw = bytearray(bundle.pack(WHOLE))
    at = raw.find(b"snapshot.json") + 60
    raw[at : at + 2] = b"XX"
    return bytes(raw)


HEAD = f'{{"schema": "{SCHEMA}", "probes": '.encode()
BUNDLES: dict[str, tuple[Callable[[], bytes], str]] = {
    "a bomb": (lambda: packed(("snapshot.json", b"0" * (20 << 20))), "MB unpacked"),
    "bombs": (lambda: packed(*((f"{n}.txt", b"0" * (2 << 20)) for n in range(9))), "MB unpacked"),
    "a bomb that says to be none": (cheating, "damaged bundle"),
    "a path up": (lambda: packed(("../../etc/x.json", "x")), "a path that leads out of it"),
    "a path from the root": (lambda: packed(("/etc/x.json", "x")), "a path that leads out of it"),
    "a drive": (lambda: packed(("C:/x.json", "x")), "a path that leads out of it"),
    "a path of Windows": (lambda: packed(("..\\x.json", "x")), "a path that leads out of it"),
    "a link": (lambda: packed((link(), "/etc/passwd")), "a link or no file"),
    "a program": (lambda: packed(("x.exe", "x")), "neither a snapshot nor a text"),
    "a bundle in a bundle": (lambda: packed(("b.zip", packed(("a.txt", "x")))), "neither"),
    "very many files": (lambda: many_files(1_000_000), "MB; a bundle has at most"),
    "many files": (lambda: many_files(300_000), "files; a bundle holds at most"),
    "twice the same name": (lambda: many_files(2), "two files of one name"),
    "a password": (encrypted, "encrypted"),
    "cut off": (lambda: bundle.pack(WHOLE)[:-30], "cut off"),
    "damaged": (damaged, "damaged"),
    "nothing in it": (packed, "holds no snapshot and no text"),
    "deep JSON in it": (
        lambda: packed(("snapshot.json", HEAD + b"[" * 100_000 + b"]" * 100_000 + b"}")),
        "damaged",
    ),
}
FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "deep JSON": (lambda: HEAD + b"[" * 100_000 + b"]" * 100_000 + b"}", "damaged"),
    "deep objects": (lambda: HEAD + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "damaged"),
    "very many parts": (lambda: HEAD + b"[" + b"[]," * MOST_PARTS + b"[]]}", "more parts"),
    "very many numbers": (lambda: HEAD + b"[" + b"1," * 3_000_000 + b"1]}", "more parts"),
    "very long": (lambda: HEAD + b'"' + b"x" * LARGEST + b'"}', "a snapshot has at most"),
    "long and wide": (lambda: HEAD + '"😀'.encode() + b"x" * (15 << 20) + b'"}', "damaged"),
    "truncated": (lambda: dump(WHOLE).encode()[:-100], "damaged"),
    "null bytes": (lambda: HEAD + b"\0\0", "binary"),
}
MEASURED = """
import json, sys
from torchdoctor import cli
codes = [cli.main(words) for words in json.loads(sys.argv[1])]
said = open("/proc/self/status").read()
print(json.dumps([codes, int(said.partition("VmHWM:")[2].split()[0]) >> 10]))
"""


@pytest.mark.parametrize("what", BUNDLES)
def test_a_hostile_bundle_is_refused_in_one_line(what: str, tmp_path: Path) -> None:
    make, why = BUNDLES[what]
    name = written(tmp_path, make())
    with pytest.raises(DoctorError) as caught:
        inputs.read([name])
    assert why in caught.value.message
    assert name in caught.value.message
    assert "\n" not in caught.value.message
    assert [path.name for path in tmp_path.iterdir()] == ["b.zip"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    "what",
    [
        pytest.param(what, marks=pytest.mark.sample if what == "a bomb" else ())
        for what in (*BUNDLES, *FILES)
    ],
)
def test_check_and_compare_refuse_what_is_hostile_with_little_memory(
    what: str, tmp_path: Path
) -> None:
    place = tmp_path / "in"
    place.mkdir()
    make, _ = (BUNDLES | FILES)[what]
    name = written(place, make(), "b.zip" if what in BUNDLES else "b.json")
    commands = [["check", name], ["compare", name, name]]
    done = subprocess.run(
        (sys.executable, "-c", MEASURED, json.dumps(commands)),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(torchdoctor.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    codes, peak = json.loads(done.stdout)
    assert codes == [2, 2], done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("torchdoctor: ") for line in lines)
    assert peak < MOST_MEMORY
    assert [path.name for path in tmp_path.rglob("*")] == ["in", Path(name).name]


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="needs names that are no text")
def test_a_name_that_is_no_text_is_said_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [os.fsdecode(os.fsencode(tmp_path / "x") + end) for end in (b"\xff.json", b"\xfe.json")]
    for name in names:
        Path(name).write_text(dump(WHOLE), "utf-8")
    out = tmp_path / "out.json"
    for form in ("json", "text", "markdown"):
        words = ["compare", *names, "--format", form, "--no-findings"]
        assert cli.main(words) == 0
        assert cli.main([*words, "-o", str(out)]) == 0
        assert "ff" in out.read_text("utf-8")
        assert "ff" in capsys.readouterr().out
