"""Files of an environment with anything in them: the probe answers, or says what is wrong."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchdoctor.resource import read_text

RECORD = (
    "torch/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"
    '"torch/a, b.py",sha256=x,3\n'
    "torch-1.0.dist-info/METADATA,,\n../../bin/torchrun,sha256=y,12\n"
)
METADATA = (
    "Metadata-Version: 2.1\nName: torch\nVersion: 1.0\nRequires-Dist: numpy; extra == 'x'\n\nText\n"
)
PTH = "import site\n/opt/more\n# a word\n__editable___finder.install()\n"
DIRECT = '{"url": "file:///src/torch", "dir_info": {"editable": true}}'
CONDA = json.dumps(
    {
        "build": "cuda126_0",
        "channel": "conda-forge",
        "files": ["lib/python3.12/site-packages/torch/__init__.py", "bin/x"],
        "name": "pytorch",
        "version": "2.9.1",
    },
    indent=2,
)
SEEDS = (RECORD, METADATA, PTH, DIRECT, CONDA)
quick = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def functions() -> dict[str, Any]:
    """Return what the probe defines; nothing of it is run but its definitions."""
    source, _, _ = read_text("probes", "environment.py").partition("\ngc.disable()")
    defined: dict[str, Any] = {"__name__": "probe"}
    exec(compile(source, "environment.py", "exec"), defined)  # noqa: S102 - our own source
    said: list[dict[str, object]] = []
    defined |= {"said": said, "HERE": os.getcwd(), "OPTIONS_CWD": "", "PATH": []}  # noqa: PTH109
    defined |= {"loads": json.loads, "dumps": json.dumps}
    defined["say"] = lambda **what: said.append(json.loads(json.dumps(what)))
    return defined


PROBE = functions()


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Return one of the files with something done to it, or anything at all."""
    content = bytearray(draw(st.sampled_from(SEEDS)).encode())
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(content)))
        way = draw(st.sampled_from(("cut", "put", "twice", "flip")))
        if way == "cut":
            del content[at:]
        elif way == "put":
            content[at:at] = draw(st.binary(max_size=20))
        elif way == "twice":
            content += content[at:]
        elif at < len(content):
            content[at] = draw(st.integers(0, 255))
    return bytes(content) if draw(st.booleans()) else draw(st.binary(max_size=200))


def a_distribution(folder: Path, name: str, content: bytes) -> dict[str, Any]:
    """Install torch 1.0 below *folder*, with *content* in its file *name*; return what is said."""
    info = folder / "torch-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (folder / "torch").mkdir(exist_ok=True)
    (folder / "torch" / "__init__.py").write_bytes(b"")
    for each, text in (("RECORD", RECORD), ("METADATA", METADATA), ("WHEEL", "Tag: py3-none-any")):
        (info / each).write_text(text)
    (info / name).write_bytes(content)
    said: dict[str, Any] = PROBE["distribution"](str(folder), info.name)
    return said


@quick
@given(content=spoiled())
@pytest.mark.parametrize("name", ["METADATA", "direct_url.json"])
def test_a_distribution_with_anything_in_its_files_is_told(
    tmp_path: Path, name: str, content: bytes
) -> None:
    said = a_distribution(tmp_path, name, content)
    assert isinstance(said["name"], str)
    assert isinstance(said["version"], str)
    json.dumps(PROBE["plain"](said))


@quick
@given(content=spoiled(), mode=st.sampled_from(["quick", "full"]))
def test_a_record_with_anything_in_it_is_compared_or_has_a_problem(
    tmp_path: Path, content: bytes, mode: str
) -> None:
    said = a_distribution(tmp_path, "RECORD", content)
    said["name"] = "torch"
    PROBE["said"].clear()
    PROBE["look_at_records"]([said], mode)
    (record,) = PROBE["said"][-1]["records"]
    assert "problem" in record or (
        len(record["missing"]) <= record["missing_count"] <= record["files"]
        and len(record["altered"]) <= record["altered_count"] <= record["files"]
    )
    assert os.getcwd() == PROBE["HERE"]  # noqa: PTH109 - as the probe has it


@quick
@given(content=spoiled())
@pytest.mark.parametrize(("kind", "name"), [("pth", "a.pth"), ("egg_links", "a.egg-link")])
def test_a_path_file_with_anything_in_it_is_kept_as_text(
    tmp_path: Path, kind: str, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    (said,) = PROBE["at_site"](kind, str(tmp_path), name)
    assert isinstance(said.get("text", said["folder"]), str)
    assert all(isinstance(line, int) for line in said.get("imports", []))


@quick
@given(content=spoiled())
def test_a_record_of_conda_with_anything_in_it_is_read_or_refused(content: bytes) -> None:
    try:
        said = PROBE["conda_record"](content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return  # each is told as the problem of this file
    assert isinstance(said["torch_files"], int)


FILES = st.lists(
    st.sampled_from(
        ["lib/python3.12/site-packages/torch/a.py", "site-packages/torch/b.py", "bin/torch", '\\"']
    ),
    max_size=5,
)


def written(record: dict[str, object], how: str) -> str:
    """Return *record* as conda writes it, sorted and indented, or as others do."""
    indent = {"conda": 2, "mamba": 4}.get(how)
    return json.dumps(record, indent=indent, sort_keys=how == "conda")


@quick
@given(
    files=FILES,
    name=st.text(min_size=1, max_size=8),
    nested=st.dictionaries(st.sampled_from(["name", "files", "x"]), st.text(max_size=5)),
    how=st.sampled_from(["conda", "mamba", "one line"]),
)
def test_the_short_way_through_a_record_of_conda_says_what_json_says(
    files: list[str], name: str, nested: dict[str, str], how: str
) -> None:
    record: dict[str, object] = {
        "build": "0",
        "channel": "c",
        "files": files,
        "link": nested,
        "name": name,
        "version": "1",
    }
    said = PROBE["conda_record"](written(record, how).encode())
    torch = sum("site-packages/torch/" in file for file in files)
    assert (said["name"], said["torch_files"]) == (name, torch)


def test_a_long_record_of_rubbish_ends_in_time(tmp_path: Path) -> None:
    seed = random.Random(7)  # noqa: S311 - the same every time
    lines = [bytes(seed.choices(b'abc",/\n\r\0', k=40)) for _ in range(5_000)]
    said = a_distribution(tmp_path, "RECORD", b"\n".join(lines))
    PROBE["said"].clear()
    PROBE["look_at_records"]([said], "full")
    (record,) = PROBE["said"][-1]["records"]
    assert "problem" in record or len(record["missing"]) <= 100
