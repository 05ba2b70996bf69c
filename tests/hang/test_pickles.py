"""A pickle is read as plain data, or not at all; nothing in it is ever run."""

from __future__ import annotations

import collections
import contextlib
import datetime as dt
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hang import make
from torchdoctor.hang import pickles

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 100), 1 << 100)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.tuples(inner, inner, inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)
RECORDED = Path(__file__).with_name("recorded") / "gloo/gloo_rank_0"


class Runs:
    """What pickles to a call of os.system."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (self.command,)


@given(value=PLAIN, protocol=st.integers(2, pickle.HIGHEST_PROTOCOL))
@settings(max_examples=25, deadline=None)
def test_plain_data_comes_out_as_it_went_in(value: Any, protocol: int) -> None:
    assert pickles.loads(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_runs_nothing(protocol: int, tmp_path: Path) -> None:
    marker = tmp_path / "was-run"
    raw = pickle.dumps({"entries": [Runs(f"touch {marker}")]}, protocol)
    with pytest.raises(pickles.NotPlain):
        pickles.loads(raw)
    assert not marker.exists()
    pickle.loads(raw)  # noqa: S301 - the same does run where pickle itself reads it
    assert marker.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x02(ios\nsystem\n.",
        b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00trueo.",
        b"\x80\x02Pname\n.",
        b"\x80\x02X\x01\x00\x00\x00aQ.",
        b"\x80\x02\x82\x01.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"\x80\x02}X\x01\x00\x00\x00ab.",
    ],
    ids=["global", "instance", "object", "name", "identity", "extension", "stack", "build"],
)
def test_each_way_to_more_than_data_is_refused(raw: bytes) -> None:
    with pytest.raises(pickles.NotPlain):
        pickles.loads(raw)


@pytest.mark.parametrize(
    "value", [dt.date(2026, 1, 1), collections.OrderedDict(a=1), {1, 2}, 1 << 200, {(1,): 2}]
)
def test_what_torch_does_not_write_is_refused(value: Any) -> None:
    with pytest.raises(pickles.NotPlain):
        pickles.loads(pickle.dumps(value, 2))


def test_a_key_that_would_take_the_whole_stack_to_hash_is_refused() -> None:
    raw = b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"Ns."
    with pytest.raises(pickles.NotPlain):
        pickles.loads(raw)


@pytest.mark.parametrize("length", [0, 1, 2, 20, -1])
def test_a_pickle_that_is_cut_is_refused(length: int) -> None:
    with pytest.raises(pickles.NotPlain):
        pickles.loads(RECORDED.read_bytes()[:length])


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_change_of_bytes_makes_another_error(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from([RECORDED.read_bytes(), SMALL])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(pickles.NotPlain):
        pickles.loads(bytes(raw))


SMALL = make.as_pickle(make.raw([make.call(1)]))
