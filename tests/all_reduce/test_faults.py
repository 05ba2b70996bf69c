"""The fault table: every fault, made for real, is told with its stage and its rank or link.

The slow tier runs it whole, on two ranks. ``TORCHDOCTOR_TEST_RANKS`` (2,4,8) and
``TORCHDOCTOR_TEST_ROUNDS`` (3) make more of it, for a machine that is quiet.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.all_reduce import trying
from tests.all_reduce.faults import EVERY, Fault

WORLDS = tuple(map(int, os.environ.get("TORCHDOCTOR_TEST_RANKS", "2").split(",")))
ROUNDS = range(int(os.environ.get("TORCHDOCTOR_TEST_ROUNDS", "1")))

TO_START = 5.0
"""Seconds by which every rank has said a word, where the run took so long."""


@pytest.mark.slow
@pytest.mark.parametrize("_round", ROUNDS)
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=fault.marks, id=fault.name) for fault in EVERY]
)
def test_a_fault_is_told_with_its_stage_and_who_is_to_blame(
    fault: Fault, world: int, _round: int, tmp_path: Path
) -> None:
    judge(fault, world, tmp_path)


def judge(fault: Fault, world: int, folder: Path) -> None:
    seen = trying.run(fault, world, folder / "run")
    said = (seen.verdict, seen.run)
    expected = fault.expected
    if expected is None:
        assert seen.verdict is None, said
    else:
        assert seen.verdict is not None, said
        assert (seen.verdict.stage, seen.verdict.cause) == (expected.stage, expected.cause), said
        ranks = trying.far(world) if fault.far else expected.ranks
        assert seen.verdict.ranks == ranks, said
        assert bool(seen.verdict.links) == expected.across, said
        for one, other in seen.verdict.links:
            assert one not in trying.far(world), said
            assert other in trying.far(world), said
    assert {rank.rank for rank in seen.run.ranks} == set(range(world))
    assert all(rank.events for rank in seen.run.ranks if rank.started and seen.seconds > TO_START)
    assert seen.seconds <= trying.limits(world).whole + 2
    assert not seen.left
