"""Public bug reports with a confirmed cause: what is said of each stays right."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.corpus_score import CHECKS, Case, Scored, cases, score, vocabulary
from tests.rebuilt_texts import inputs as rebuilt
from torchdoctor import inputs
from torchdoctor.facts import Expectation
from torchdoctor.reading import machine
from torchdoctor.run import run

CASES = {case.id: case for case in cases()}

NOT_YET: Mapping[str, str] = {}
"""Cases of which the cause is not found, and why. One that becomes right has to leave the list."""

SAID_TOO_MUCH: Mapping[str, list[str]] = {}
"""Cases on which something is said that no label names. One that is cured has to leave the list."""

NO_TEXT_TELLS: Mapping[str, str] = {
    "path-dll-conflict": "which file a process took is in the files only: checks/test_dll_path.py",
    "dll-missing": "which DLL is absent is in the import tables only: checks/test_dll_closure.py",
}
"""Root causes of which no text can be the first finding, and where they are found instead."""

NOT_IN_ORDER: Mapping[str, str] = {}
"""Hard cases whose plan does not clear what is expected in the order expected, and why."""


@pytest.fixture(scope="module")
def scored() -> dict[str, Scored]:
    """Return what is said of every case; no check may crash on one."""
    return {name: score(case) for name, case in CASES.items()}


each = pytest.mark.parametrize("name", CASES)


@each
def test_the_cause_is_named_first_or_the_case_is_listed(
    scored: dict[str, Scored], name: str
) -> None:
    one = scored[name]
    said = f"{one.case.expected} {one.case.acceptable}: said {one.above_note}"
    assert one.right == (name not in NOT_YET), said


@each
def test_nothing_is_said_that_no_label_names(scored: dict[str, Scored], name: str) -> None:
    assert scored[name].false == SAID_TOO_MUCH.get(name, [])


@each
def test_the_plan_leaves_no_more_than_was_found(scored: dict[str, Scored], name: str) -> None:
    one = scored[name]
    left = [f.name for f in one.plan.remaining if f.severity != "note"]
    assert len(left) <= len(one.above_note), left


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.order])
def test_the_plan_clears_a_hard_case_in_its_order(scored: dict[str, Scored], name: str) -> None:
    assert scored[name].ordered == (name not in NOT_IN_ORDER)


def test_the_lists_name_cases_that_exist() -> None:
    assert (NOT_YET.keys() | SAID_TOO_MUCH.keys() | NOT_IN_ORDER.keys()) <= CASES.keys()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.healthy])
def test_a_healthy_machine_is_left_alone(scored: dict[str, Scored], name: str) -> None:
    assert scored[name].above_note == []
    assert scored[name].plan.steps == ()
    assert scored[name].plan.verdict == "healthy"


def test_each_root_cause_is_the_first_finding_on_some_input(scored: dict[str, Scored]) -> None:
    first = {one.above_note[0] for one in scored.values() if one.above_note}
    first |= {one.cause for one in rebuilt()}
    names = [name for name in vocabulary() if name != "healthy"]
    assert [n for n in names if n not in first and n not in NO_TEXT_TELLS] == []
    assert [n for n in NO_TEXT_TELLS if n in first or n not in names] == []


def test_each_label_is_a_root_cause_that_is_explained() -> None:
    known = {*vocabulary()}
    used = {n for c in CASES.values() for n in (c.expected, *c.acceptable, *c.order)}
    used |= {one.cause for one in rebuilt()}
    assert sorted(used - known) == []


def families(*names: str) -> list[Case]:
    return [case for case in CASES.values() if case.family in names and case.set == "first"]


@pytest.mark.parametrize(
    "family", ["cuda-driver-arch", "version-align", "install-mix", "windows-dll"]
)
def test_a_whole_family_is_right(scored: dict[str, Scored], family: str) -> None:
    assert [case.id for case in families(family) if not scored[case.id].right] == []


@each
def test_no_check_crashes_on_half_a_report(name: str) -> None:
    text = CASES[name].file.read_text("utf-8")
    for part in (text[: len(text) // 2], text[len(text) // 2 :]):
        facts = machine.read(inputs.of_text(part), Expectation())
        assert [o.reason for o in run(CHECKS, facts) if o.status == "crashed"] == []
