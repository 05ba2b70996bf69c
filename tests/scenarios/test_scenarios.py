"""Every scene gets its right answer, and its plan, carried out, cures it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest

from tests.scenarios import trial
from tests.scenarios.catalogue import SCENARIOS
from tests.scenarios.doctor import HAS_DRIVER
from tests.scenarios.rivals import CELLS, TOOLS
from tests.scenarios.scenario import Scenario

IN_THE_LAB = [s for s in SCENARIOS.values() if s.proof in ("heals", "becomes") and not s.quick]


Recorder = Callable[[str, object], None]


def try_it(scenario: Scenario, record: Recorder, *, lab: bool) -> None:
    if scenario.gpu_free and HAS_DRIVER:
        pytest.skip("needs a machine without an NVIDIA driver")
    try:
        row = trial.run(scenario, lab=lab)
    except LookupError as reason:
        pytest.skip(str(reason))
    record("scene", asdict(row))
    assert row.cause, row.found
    assert row.right, row.proof


@pytest.mark.lab
@pytest.mark.sample
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda s: s.key)
def test_a_scene_gets_the_right_answer(scenario: Scenario, record_property: Recorder) -> None:
    try_it(scenario, record_property, lab=False)


@pytest.mark.lab
@pytest.mark.parametrize("scenario", IN_THE_LAB, ids=lambda s: s.key)
def test_its_plan_carried_out_cures_it(scenario: Scenario, record_property: Recorder) -> None:
    try_it(scenario, record_property, lab=True)


def test_the_recorded_cells_are_whole() -> None:
    assert {len(cells) for cells in CELLS.values()} == {len(TOOLS)}
    assert set(CELLS) <= set(SCENARIOS)
