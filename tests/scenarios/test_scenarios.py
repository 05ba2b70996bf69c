"""Every scene gets its right answer, and its plan, carried out, cures it."""

from __future__ import annotations

import pytest

from tests.scenarios import trial
from tests.scenarios.catalogue import SCENARIOS, Scenario
from tests.scenarios.doctor import HAS_DRIVER
from tests.scenarios.rivals import CELLS, TOOLS

IN_THE_LAB = [s for s in SCENARIOS.values() if s.proof in ("heals", "becomes") and not s.quick]


def try_it(scenario: Scenario, rows: dict[str, trial.Row], *, lab: bool) -> None:
    if scenario.gpu_free and HAS_DRIVER:
        pytest.skip("needs a machine without an NVIDIA driver")
    try:
        row = trial.run(scenario, lab=lab)
    except LookupError as reason:
        pytest.skip(str(reason))
    rows[scenario.key] = row
    assert row.cause, row.found
    assert row.right, row.proof


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda s: s.key)
def test_a_scene_gets_the_right_answer(scenario: Scenario, rows: dict[str, trial.Row]) -> None:
    try_it(scenario, rows, lab=False)


@pytest.mark.lab
@pytest.mark.parametrize("scenario", IN_THE_LAB, ids=lambda s: s.key)
def test_its_plan_carried_out_cures_it(scenario: Scenario, rows: dict[str, trial.Row]) -> None:
    try_it(scenario, rows, lab=True)


def test_the_recorded_cells_are_whole() -> None:
    assert {len(cells) for cells in CELLS.values()} == {len(TOOLS)}
    assert set(CELLS) <= set(SCENARIOS)
