from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report import samples
from torchdoctor.facts import Build, Device, Facts, ImportTrial, Interpreter, Runtime, Unknown
from torchdoctor.model import Finding, Outcome
from torchdoctor.report.document import Target, build, failure, folded

PYTHON = Interpreter("/venv/bin/python", "3.12.1", "/venv", "/usr", "venv")
WORKS = Facts(
    torch=Build("2.9.1+cu130"),
    interpreter=PYTHON,
    trial=ImportTrial("torch", "imported", 2.0),
    runtime=Runtime(
        "2.9.1+cu130", cuda="13.0", available=True, devices=(Device(0, "NVIDIA H200"),)
    ),
)


def shape(*findings: Finding) -> list[tuple[str, list[str]]]:
    return [(f.finding.name, [c.name for c in f.consequences]) for f in folded(findings)]


def headline(facts: Facts, target: Target = samples.LIVE) -> str:
    return build(target=target, facts=facts).headline


def test_consequences_fold_under_the_cause_at_the_end_of_the_chain() -> None:
    a = samples.finding("a")
    b = samples.finding("b", because_of=("x", "a"))
    c = samples.finding("c", because_of=("b",))
    assert shape(c, a, b) == [("a", ["c", "b"])]


def test_a_cause_that_was_not_found_folds_nothing() -> None:
    assert shape(samples.finding("b", because_of=("a",))) == [("b", [])]


def test_an_error_is_not_hidden_under_a_note() -> None:
    note = samples.finding("a", "note")
    assert shape(note, samples.finding("b", because_of=("a",))) == [("a", []), ("b", [])]
    assert shape(samples.finding("b"), replace(note, because_of=("b",))) == [("b", ["a"])]


def test_a_circle_of_causes_keeps_its_first() -> None:
    a = samples.finding("a", because_of=("b",))
    b = samples.finding("b", because_of=("a",))
    c = samples.finding("c", because_of=("b",))
    assert shape(c, b, a) == [("b", ["c", "a"])]
    assert shape(replace(c, because_of=("a",)), b, a) == [("b", ["c", "a"])]
    assert shape(samples.finding("a", because_of=("a",))) == [("a", [])]


def test_two_of_one_name_both_stand() -> None:
    twin = samples.finding("a", because_of=("a",))
    assert shape(twin, twin) == [("a", []), ("a", [])]


def test_a_chain_of_ten_thousand_folds() -> None:
    chain = [samples.finding(f"f-{n}", because_of=(f"f-{n - 1}",)) for n in range(10_000)]
    for ordered in (chain, chain[::-1]):
        assert [len(f.consequences) for f in folded(tuple(ordered))] == [9_999]


def test_the_headline_is_the_first_fault_and_how_many_more() -> None:
    found = [
        samples.finding("a", summary="A is so."),
        samples.finding("b", because_of=("a",)),
        samples.finding("c", "warning"),
        samples.finding("d", "note"),
    ]
    assert build(target=samples.LIVE, findings=found).headline == "A is so. And 1 more."
    assert build(target=samples.LIVE, findings=found[:2]).headline == "A is so."


@pytest.mark.parametrize(
    ("runtime", "said"),
    [
        (WORKS.runtime, "CUDA 13.0 on NVIDIA H200"),
        (
            Runtime("2", cuda="13.0", available=True, devices=(Device(0, "A"), Device(1, "A"))),
            "CUDA 13.0 on 2 x A",
        ),
        (
            Runtime("2", hip="7.2", available=True, devices=(Device(0, "MI300X"),)),
            "ROCm 7.2 on MI300X",
        ),
        (Runtime("2", mps=True), "MPS"),
        (Runtime("2", xpu=True), "XPU"),
        (Runtime("2", cuda="13.0"), "CPU"),
    ],
)
def test_a_machine_that_works_is_told_with_what(runtime: Runtime, said: str) -> None:
    facts = replace(WORKS, runtime=runtime)
    assert headline(facts) == f"PyTorch works here: torch 2.9.1+cu130 (Python 3.12.1), {said}."


def test_a_machine_elsewhere_works_there() -> None:
    assert headline(WORKS, Target("snapshot", ("a.json",))).startswith("PyTorch works there: ")


def test_what_was_not_tried_is_not_said_to_work() -> None:
    facts = replace(WORKS, trial=Unknown("--no-import"), runtime=Unknown())
    assert headline(facts) == (
        "Nothing was found that stands in the way: torch 2.9.1+cu130 (Python 3.12.1)."
    )
    assert headline(Facts()) == "Nothing was found that stands in the way."


def test_what_is_missing_is_named_when_nothing_is_known_of_the_import() -> None:
    outcomes = [Outcome("a", "clear"), Outcome("b", "unknown", reason="no driver answered")]
    report = build(target=samples.LIVE, outcomes=outcomes, essential_unknown=True)
    assert report.headline == ("Cannot tell whether PyTorch works here: b (no driver answered).")


def test_a_headline_may_be_given() -> None:
    assert build(target=samples.LIVE, headline="2 ranks agree.").headline == "2 ranks agree."


def test_a_failure_names_its_file_once() -> None:
    assert failure("input", "it is empty", "a.txt").headline == "a.txt: it is empty"
    assert failure("input", "a.txt is empty", "a.txt").headline == "a.txt is empty"
