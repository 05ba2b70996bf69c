"""Dumps of every version are read field by field; what is no dump is told in one way."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hang import make
from torchdoctor.hang import blame, flight_recorder, folder
from torchdoctor.hang.records import Dump, Group, Status

RECORDED = Path(__file__).with_name("recorded")
"""Dumps that torch 2.13 wrote of two ranks over gloo, one of which sleeps before the third call."""


def read(raw: bytes, rank: int = 0) -> Dump:
    return flight_recorder.dump(flight_recorder.parse(raw), rank)


@pytest.mark.parametrize("version", make.VERSIONS)
@pytest.mark.parametrize("write", [make.as_pickle, make.as_json])
def test_every_version_is_read(version: str, write: Any) -> None:
    entries = [
        make.call(1, version=version),
        make.call(2, "all_gather", version=version, state="started", size=(2, 3)),
        make.call(1, "send 0->1", version=version, p2p=True, state="scheduled"),
    ]
    found = read(write(make.raw(entries, version=version)))
    assert found.version == version
    assert found.groups == {"0": Group("0", "default_pg", (0, 1))}
    one, two, message = found.entries
    assert (one.number, one.operation, one.backend, one.done) == (1, "all_reduce", "nccl", True)
    assert (two.state, two.input_sizes, two.done) == ("started", ((2, 3),), False)
    assert one.input_types[0].lower() == "float"
    assert (message.p2p, message.number, message.operation) == (True, 1, "send 0->1")
    minor = int(version.partition(".")[2])
    assert one.timeout == (600_000 if minor >= 2 else None)
    assert found.status == ({"0": Status(2, -1, 1)} if minor >= 3 else {})
    with_stacks = write is make.as_pickle
    assert [f.function for f in one.frames] == (["all_reduce", "step"] if with_stacks else [])


@pytest.mark.parametrize("version", make.VERSIONS)
def test_who_is_behind_is_the_same_in_every_version(version: str) -> None:
    ahead = [*make.agreed(3, version=version), make.call(4, version=version, state="started")]
    behind = make.agreed(3, version=version)
    dumps = [
        read(make.as_pickle(make.raw(ahead, version=version)), 0),
        read(make.as_json(make.raw(behind, version=version)), 1),
    ]
    found = blame.blame(make.job(*dumps))
    assert (found.cause, found.ranks, found.waiting) == ("late", (1,), (0,))
    assert found.entry is not None
    assert found.entry.number == 4


def test_what_a_real_torch_wrote_over_gloo_is_read() -> None:
    left = folder.read([str(RECORDED / "gloo")])
    job = folder.job(left)
    assert [rank.rank for rank in job.ranks] == [0, 1]
    first = job.ranks[0].dump
    assert first is not None
    assert first.version == "2.10"
    told = [(e.group, e.number, e.operation, e.done) for e in first.entries]
    assert told == [
        ("0", 1, "all_reduce", True),
        ("1", 1, "all_gather", True),
        ("0", 2, "barrier", True),
        ("0", 3, "all_reduce", False),
    ]
    assert first.entries[-1].input_sizes == ((5, 7),)
    assert first.entries[-1].input_types == ("Double",)
    found = blame.blame(job)
    assert (found.cause, found.ranks, found.waiting) == ("late", (1,), (0,))


def test_json_and_pickle_of_a_real_torch_say_the_same() -> None:
    (one,) = folder.read([str(RECORDED / "gloo-json")]).dumps[0]
    (other,) = folder.read([str(RECORDED / "gloo")]).dumps[0]
    assert one.entries == other.entries
    assert one.status == other.status


def test_a_version_before_2_counts_in_one_number() -> None:
    entry = make.call(7, version="2.0") | {"seq_id": 7}
    del entry["collective_seq_id"], entry["p2p_seq_id"], entry["is_p2p"], entry["process_group"]
    whole = {"version": "1.4", "entries": [entry], "pg_config": {"0": [0, 1]}}
    found = read(make.as_pickle(whole))
    assert [(one.number, one.group) for one in found.entries] == [(7, "0")]
    assert found.groups["0"].ranks == (0, 1)


def test_a_newer_version_is_read_and_said(tmp_path: Path) -> None:
    for rank in (0, 1):
        whole = make.raw(make.agreed(2)) | {"version": "2.11", "new": [1]}
        (tmp_path / f"trace_{rank}").write_bytes(make.as_pickle(whole))
    job = folder.job(folder.read([str(tmp_path)]))
    assert job.remarks == ("version 2.11 of a dump is newer than is known here (2.10)",)
    assert blame.blame(job).cause == "none"


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_3", 3),
        ("trace_12", 12),
        ("rank7.json", 7),
        ("host_rank10.pickle", 10),
        ("torchdoctor-rank4.nccl.fr", 4),
        ("README", None),
        ("trace_3_old", None),
    ],
)
def test_the_rank_is_in_the_name(name: str, rank: int | None) -> None:
    assert flight_recorder.rank_of(name) == rank


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "neither JSON nor a pickle"),
        (b"hello", "neither JSON nor a pickle"),
        (b"{", "no whole JSON"),
        (b"[" * 100_000, "no whole JSON"),
        (b"\x80\x02cos\nsystem\n.", "more than plain data"),
        (b'{"version": 2, "entries": []}', "holds no entries"),
        (b'{"entries": []}', "holds no entries"),
        (b"[1, 2]", "holds no entries"),
    ],
)
def test_what_is_no_dump_is_told(raw: bytes, said: str) -> None:
    with pytest.raises(flight_recorder.NotADump, match=said):
        read(raw)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "trace_0"
    with path.open("wb") as file:
        file.truncate(flight_recorder.LARGEST + 1)
    with pytest.raises(flight_recorder.NotADump, match="larger than 64 MiB"):
        flight_recorder.read(path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from([*make.call(1), "seq_id", "pg_name"])
TOP = st.sampled_from(["version", "entries", "pg_config", "pg_status", "rank"])


@given(st.dictionaries(FIELDS, VALUES), st.dictionaries(TOP, VALUES))
@settings(max_examples=30, deadline=None)
def test_fields_of_any_type_make_no_other_error(fields: Any, top: Any) -> None:
    whole = make.raw([make.call(1), make.call(2)]) | top
    if isinstance(whole["entries"], list):
        whole["entries"] = [make.call(1) | fields, *whole["entries"]]
    for rank in (0, 1):
        try:
            dump = flight_recorder.dump(whole, rank)
        except flight_recorder.NotADump:
            continue
        assert blame.blame(make.job(dump, make.dump(1 - rank, make.call(1)))).cause


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_no_change_of_a_json_dump_makes_another_error(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from([JSON, (RECORDED / NAME).read_bytes()])))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(flight_recorder.NotADump):
        read(bytes(raw))


NAME = "gloo-json/gloo_rank_0.json"
JSON = make.as_json(make.raw(make.agreed(2)))


def test_numbers_that_no_torch_writes_are_left_out() -> None:
    whole = make.raw([make.call(1), make.call(2)])
    whole["entries"][0]["collective_seq_id"] = 1 << 80
    whole["entries"][1]["timeout_ms"] = -1
    (one,) = flight_recorder.dump(whole, 0).entries
    assert (one.number, one.timeout) == (2, None)


def test_a_rank_may_have_a_recorder_for_nccl_and_one_for_the_rest(tmp_path: Path) -> None:
    (tmp_path / "torchdoctor-rank0.fr").write_bytes(
        make.as_pickle(make.raw(make.agreed(2, backend="gloo")))
    )
    (tmp_path / "torchdoctor-rank0.nccl.fr").write_bytes(make.as_pickle(make.raw(make.agreed(3))))
    left = folder.read([str(tmp_path)])
    dump = folder.merged(left.dumps[0])
    assert dump is not None
    assert [(e.backend, e.number) for e in dump.entries] == [
        *(("gloo", n) for n in (1, 2)),
        *(("nccl", n) for n in (1, 2, 3)),
    ]


def test_of_two_dumps_of_one_rank_the_newer_counts() -> None:
    old = make.dump(0, *make.agreed(2))
    new = flight_recorder.dump(make.raw(make.agreed(5)), 0, at=2.0)
    for order in ([old, new], [new, old]):
        merged = folder.merged(order)
        assert merged is not None
        assert len(merged.entries) == 5


def test_json_that_is_something_else_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "config_1.json").write_text(json.dumps({"version": "3", "lr": 0.1}))
    (tmp_path / "trace_0").write_bytes(make.as_pickle(make.raw(make.agreed(1), groups={"0": [0]})))
    left = folder.read([str(tmp_path)])
    assert list(left.dumps) == [0]
    assert left.remarks == []
