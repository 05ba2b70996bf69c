"""Every recipe gets its right answer, every healthy twin is quiet, and the plans cure."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests import environments
from tests.lab import interrupted
from tests.lab.catalogue import OLD, RECIPES
from tests.scenarios import trial
from tests.scenarios.doctor import Answer
from tests.scenarios.scenario import Scenario

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the loader of Linux")
QUICK = [recipe for recipe in RECIPES.values() if recipe.quick]


@pytest.fixture(scope="module", autouse=True)
def _no_copies_left() -> Iterator[None]:
    yield
    environments.drop_copies()


def try_it(recipe: Scenario, *, lab: bool) -> None:
    try:
        row = trial.run(recipe, lab=lab)
    except LookupError as reason:
        pytest.skip(str(reason))
    assert row.cause, row.found
    assert row.right, row.proof


@pytest.mark.lab
@pytest.mark.sample
@pytest.mark.parametrize("recipe", QUICK, ids=lambda r: r.key)
def test_a_quick_recipe_gets_the_right_answer(recipe: Scenario) -> None:
    try_it(recipe, lab=False)


@pytest.mark.lab
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda r: r.key)
def test_a_recipe_gets_the_right_answer_and_its_plan_cures(recipe: Scenario) -> None:
    try_it(recipe, lab=True)


@pytest.mark.lab
@pytest.mark.parametrize("seed", range(interrupted.TRIALS))
def test_an_interrupted_upgrade_is_known_and_mended(seed: int) -> None:
    try_it(interrupted.scenario(seed), lab=True)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("recipe", OLD.values(), ids=lambda r: r.key)
def test_an_old_torch_without_its_dependencies_is_told(recipe: Scenario) -> None:
    try_it(recipe, lab=True)


def test_enough_plans_are_carried_out() -> None:
    carried_out = [recipe for recipe in RECIPES.values() if recipe.proof == "heals"]
    assert len(carried_out) >= 15


def test_a_twin_is_the_twin_of_something_broken() -> None:
    for name, recipe in RECIPES.items():
        if name.endswith("twin"):
            assert not recipe.expected, name
    assert any(recipe.expected for recipe in RECIPES.values())


def test_an_answer_by_a_bundle_that_is_another_is_told() -> None:
    def answer(*names: str, severity: str = "error") -> Answer:
        found = [{"name": name, "severity": severity, "because_of": []} for name in names]
        return Answer(1, {"findings": found}, 0.0)

    assert not trial.unlike(answer("a", "b"), answer("a", "b"))
    assert trial.unlike(answer("a", "b"), answer("a"))
    assert trial.unlike(answer("a"), answer("b"))
    assert trial.unlike(answer("a"), answer("a", severity="note"))
