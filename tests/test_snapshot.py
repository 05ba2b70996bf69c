"""A snapshot comes back as it was; what is none is refused in one clear line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdoctor import snapshot
from torchdoctor.child import Run, Stream
from torchdoctor.facts import Expectation, Facts
from torchdoctor.model import DoctorError
from torchdoctor.reading import machine
from torchdoctor.snapshot import Snapshot, dump, load, parse

RUN = Run(
    ("python", "-"),
    "answered",
    0.5,
    exit_code=0,
    stdout=Stream("hé\n", 4, "ab"),
    data={"version": [3, 11, 7], "deep": {"a": None}},
)
WHOLE = Snapshot("2026-11-29T12:00:00Z", {"environment": RUN}, {"cwd": "/w"}, redacted=True)


def refused(raw: bytes) -> str:
    with pytest.raises(DoctorError) as caught:
        parse(raw, "the-file.json")
    message = caught.value.message
    assert caught.value.file == "the-file.json"
    assert "the-file.json" in message
    assert "\n" not in message
    assert "torchdoctor" in message  # it says what to do
    return message


def test_a_snapshot_comes_back_as_it_was() -> None:
    assert parse(dump(WHOLE).encode(), "x") == WHOLE


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=5), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_whatever_a_probe_said_comes_back(data: dict[str, object]) -> None:
    whole = Snapshot("now", {"p": Run(("x",), "failed", data=data)})
    assert parse(dump(whole).encode(), "x") == whole


def test_an_empty_file_is_refused() -> None:
    assert "is empty" in refused(b" \n")


def test_binary_rubbish_is_refused() -> None:
    assert "binary" in refused(b"\x7fELF\0\0\0")


def test_text_is_refused() -> None:
    assert "is no snapshot" in refused(b"ImportError: libcudart.so.12\n")


def test_other_json_is_refused() -> None:
    assert "no snapshot of torchdoctor" in refused(b'{"a": 1}')
    assert "no snapshot of torchdoctor" in refused(b"[1]")


def test_a_truncated_snapshot_is_refused() -> None:
    assert "cut off" in refused(dump(WHOLE).encode()[:-40])


def test_a_newer_schema_is_refused_by_its_number() -> None:
    raw = dump(WHOLE).replace("snapshot/1", "snapshot/2").encode()
    assert "Use a newer torchdoctor" in refused(raw)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("probes", "environment", "outcome"), "fine"),
        (("probes", "environment", "seconds"), "fast"),
        (("probes", "environment", "data"), []),
        (("probes", "environment", "stdout"), None),
        (("probes",), []),
        (("redacted",), "no"),
        (("extra",), 1),
    ],
)
def test_a_damaged_snapshot_is_refused(path: tuple[str, ...], value: object) -> None:
    document = json.loads(dump(WHOLE))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert "damaged" in refused(json.dumps(document).encode())


def test_json_of_endless_depth_is_refused() -> None:
    refused(b'{"schema":' + b"[" * 200_000 + b"]" * 200_000 + b"}")


def test_a_file_that_is_too_large_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)  # sparse: 200 MB that take no room
    with pytest.raises(DoctorError, match=r"huge\.json has 200 MB; .* at most 16 MB"):
        load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DoctorError, match=r"none\.json cannot be read: No such file"):
        load(tmp_path / "none.json")


def test_a_snapshot_without_probes_leaves_every_fact_unknown() -> None:
    facts = machine.read(Snapshot("now", {}), Expectation())
    assert facts == Facts()


@given(
    st.sampled_from(["environment", "host", "driver", "import torch", "nvidia-smi"]),
    st.dictionaries(
        st.sampled_from(
            [
                "interpreter",
                "distributions",
                "modules",
                "records",
                "variables",
                "devices",
                "error",
                "platform",
                "cpu",
                "done",
                "stage",
                "driver",
                "nodes",
                "kernel",
                "versions",
                "conda",
            ]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=9),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=5), inner, max_size=3)
            ),
            max_leaves=6,
        ),
        max_size=6,
    ),
)
def test_a_hostile_answer_of_a_probe_is_never_an_exception(
    name: str, data: dict[str, object]
) -> None:
    run = Run(("x",), "answered", data=data, stdout=Stream(str(data), 1, ""))
    machine.read(Snapshot("now", {name: run}), Expectation())


def test_the_schema_is_shipped_beside_the_code() -> None:
    assert json.loads((Path(snapshot.__file__).with_name("snapshot.schema.json")).read_text())


def test_a_machine_without_any_trace_of_nvidia_has_no_driver_and_nobody_asks_it() -> None:
    data: dict[str, object] = {
        "stage": "not asked",
        "library": None,
        "smi_needed": True,
        "errors": {},
        "done": True,
    }
    host: dict[str, object] = {
        "system": {"platform": "linux"},
        "kernel": {"modules": [], "built_in": []},
        "device_nodes": [],
        "driver_files": {"libraries": [], "nvidia_smi": []},
        "errors": {},
        "done": True,
    }
    probes = {"driver": Run((), "answered", data=data), "host": Run((), "answered", data=host)}
    assert machine.read(Snapshot("now", probes), Expectation()).driver is None
