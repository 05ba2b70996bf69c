"""What Wine showed, held against the model without Wine: the table, the matrix, the blind cases."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any, get_args

import pytest

from tests.windows.machines import LIB, folder, imported, machine, python, runtime
from tests.windows.wine import cases, kept
from tests.windows.wine.cases import ENDED, Outcome, Prediction
from tests.windows.wine.program import python_exe
from windows import pe
from windows.dll_facts import DllFacts, Need, hashed
from windows.loader import Kind, Machine, Problem, base, load

RESULTS = json.loads(kept.RESULTS.read_text("ascii"))
PREDICTED = json.loads(kept.PREDICTIONS.read_text("ascii"))
SHOWN = json.loads(kept.BLIND_RESULTS.read_text("ascii"))
MISSED = frozenset(
    {
        # msvcp140.dll 14.39 is new enough already: a fault was predicted for all before 14.40.
        "shiboken6 6.8.1 first, torch 2.12.1",
        # The stand-in for what is missing is called while the file initialises.
        "a caffe2_detectron_ops.dll of torch 1.10.2 was left, torch 2.8.0",
        "torchaudio 2.8.0 in torch 2.5.1",
    }
)
"""The blind cases that came out otherwise than predicted."""
TOP = LIB + r"\top.dll"


def translated(*files: DllFacts) -> Prediction:
    """Return what the load of top.dll comes to with *files* in its folder."""

    def judge(machine: Machine) -> tuple[Outcome, Problem | None]:
        result = load(machine, TOP)
        problem = result.problems[0] if result.problems else None
        return Outcome(result.error, base(TOP) if problem else ""), problem

    return cases.translated(Machine((folder(LIB, "package", *files),)), judge)


def dll(name: str, *needs: Need | str, **more: Any) -> DllFacts:
    found = tuple(need if isinstance(need, Need) else Need(need) for need in needs)
    return DllFacts(name, needs=found, **more)


LOCKS = Need("msvcp140.dll", ("_Mtx_lock",))
OLD = dll("msvcp140.dll", version=(14, 29), exports=frozenset())


@pytest.mark.parametrize(
    ("files", "windows", "wine"),
    [
        pytest.param([dll("top.dll")], 0, 0, id="it loads"),
        pytest.param([dll("top.dll", "gone.dll")], 126, 126, id="something is missing"),
        pytest.param([dll("top.dll", broken="cut")], 193, 193, id="the file itself is cut"),
        pytest.param([dll("top.dll", machine="arm64")], 193, 193, id="the file is for ARM64"),
        pytest.param(
            [dll("top.dll", "dep.dll"), dll("dep.dll", broken="cut")], 193, 126, id="another is cut"
        ),
        pytest.param(
            [dll("top.dll", "dep.dll"), dll("dep.dll", machine="arm64")],
            193,
            126,
            id="another is for ARM64",
        ),
        pytest.param(
            [dll("top.dll", Need("dep.dll", ("f",), (7,))), dll("dep.dll", ordinals=((1, 3),))],
            127,
            0,
            id="a name is missing, and an ordinal",
        ),
        pytest.param(
            [dll("top.dll", Need("dep.dll", (), (7,))), dll("dep.dll")], 182, 0, id="an ordinal"
        ),
        pytest.param(
            [dll("top.dll", Need("dep.dll", hashes=(7,))), dll("dep.dll")], 127, 0, id="a hash"
        ),
        pytest.param(
            [
                dll("top.dll", Need("dep.dll", ("f",)), Need("more.dll", ("g",))),
                dll("dep.dll"),
                dll("more.dll"),
            ],
            127,
            0,
            id="names of two files",
        ),
    ],
)
def test_windows_is_translated_to_wine_by_the_table(
    files: list[DllFacts], windows: int, wine: int
) -> None:
    found = translated(*files)
    assert (found.windows.error, found.wine.error) == (windows, wine)
    assert bool(found.translated) is (windows != wine)
    assert found.wine.named == ("top.dll" if wine else "")


def test_a_fault_behind_a_missing_name_comes_to_light_under_wine() -> None:
    exports = frozenset({hashed("_Mtx_lock")})
    old = replace(OLD, exports=exports)
    found = translated(dll("top.dll", LOCKS, Need("dep.dll", ("f",))), dll("dep.dll"), old)
    assert (found.windows.error, found.wine.error) == (127, 998)
    assert len(found.translated) == 2


def test_a_stand_in_may_also_end_the_program_but_nothing_else_may_happen() -> None:
    found = translated(dll("top.dll", Need("dep.dll", ("f",))), dll("dep.dll"))
    assert found.agrees(Outcome(0))
    assert found.agrees(Outcome(998, "top.dll"))
    assert found.agrees(Outcome(ENDED, "top.dll"))
    assert not found.agrees(Outcome(998, "dep.dll"))
    assert not found.agrees(Outcome(126, "top.dll"))
    assert not translated(dll("top.dll")).agrees(Outcome(998, "top.dll"))


def test_the_table_says_for_every_kind_of_problem_at_most_one_thing() -> None:
    rows = cases.table("differences")["difference"]
    kinds = set(get_args(Kind))
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        assert set(row["kinds"]) <= kinds
        assert row["source"]
        assert row["wine"] not in row["windows"]
    said = [kind for row in rows for kind in row["kinds"]]
    assert len(said) == len(set(said))


# ---- what Wine showed ----


def from_facts(case: cases.Case) -> Prediction:
    """Return what is predicted of *case* from the facts of the same wheels."""
    beside = {name: runtime("14.34")[name] for name in ("vcruntime140_1.dll",)}
    before = machine(case.torch, case.runtime, application={**python(), **beside})

    def judge(machine: Machine) -> tuple[Outcome, Problem | None]:
        answer = imported(machine, case.torch)
        named = base(answer.named) if answer.error else ""
        msvcp = answer.msvcp.path.lower() if answer.loads and answer.msvcp else ""
        return Outcome(answer.error, named, answer.hint, msvcp), answer.problem

    return cases.translated(before, judge)


@pytest.mark.parametrize("case", cases.matrix(), ids=lambda case: case.name)
def test_what_wine_showed_of_the_matrix_is_predicted_from_facts_alone(case: cases.Case) -> None:
    assert from_facts(case).agrees(Outcome(**RESULTS[case.name]))


def test_every_case_has_a_result() -> None:
    assert list(RESULTS) == [case.name for case in cases.all_of_them()]


def test_the_matrix_is_of_at_least_five_releases_and_six_runtimes() -> None:
    rows = cases.table("cases")["matrix"]
    assert len(rows["torch"]) >= 5
    assert len(rows["runtime"]) >= 6


# ---- the blind cases ----


@cache
def hit(name: str) -> bool:
    """Return whether the blind case came out as it was predicted, to the letter."""
    expected: dict[str, Any] = PREDICTED[name]["wine"]
    shown: dict[str, Any] = SHOWN[name]
    return expected == shown


def test_hits_and_misses_of_the_blind_cases_are_both_kept() -> None:
    names = [case.name for case in kept.blind()]
    assert list(PREDICTED) == names
    assert list(SHOWN) == names
    assert {name for name in names if not hit(name)} == MISSED


def test_blind_cases_are_not_those_that_the_model_was_tried_on() -> None:
    tried = {(case.torch, case.runtime, *case.packages) for case in cases.all_of_them()}
    new = [c for c in kept.blind() if (c.torch, c.runtime, *c.packages) not in tried]
    assert len(new) >= 12


def test_the_blind_cases_that_need_no_translation_came_out_as_predicted() -> None:
    plain = [name for name, said in PREDICTED.items() if not said["translated"]]
    assert len(plain) >= 12
    assert not MISSED & set(plain)


# ---- the program that runs under Wine ----


def test_the_program_calls_python_and_is_one_that_windows_can_start() -> None:
    file = pe.parse(python_exe("python311.dll"))
    assert (file.machine, file.is_dll, file.subsystem) == ("x64", False, 3)
    taken = {item.dll: item.names for item in file.imports}
    assert taken["python311.dll"] == ("Py_Main",)
    assert file.size >= file.sections_end
    assert not file.damage
