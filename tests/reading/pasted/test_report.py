"""torchdoctor's own reports are recognised as such, whole, at any width, and taken out."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report import samples
from torchdoctor import inputs, plan
from torchdoctor.facts import Build, Expectation, Interpreter, Symptom, Unknown
from torchdoctor.model import Finding
from torchdoctor.reading import machine
from torchdoctor.reading.pasted import report as reader
from torchdoctor.registry import all_checks
from torchdoctor.report import markdown, text, words
from torchdoctor.report.document import Report
from torchdoctor.run import run

CHECKS = all_checks()
WIDTHS = (40, 57, 79, 80, 100, 120)
KEBABS = samples.KEBABS
FEW_NAMES = st.sampled_from(["a", "b-c", "driver-too-old", "d" * 36, "torch-not-installed"])


def shown(report: Report) -> list[tuple[str, str, str]]:
    """Return what of the findings of *report* its text has: notes without their confidence."""
    faults = [f.finding for f in report.faults if f.finding.severity != "note"]
    notes = [f.finding for f in report.faults if f.finding.severity == "note"]
    rows = [(f.name, str(f.severity), str(f.confidence)) for f in faults[: words.FEW_FAULTS]]
    return [*rows, *((f.name, "note", "certain") for f in notes[: words.FEW_NOTES])]


def told(symptoms: tuple[Symptom, ...]) -> list[tuple[str, str, str]]:
    values = [s.values for s in symptoms if "finding" in s.values]
    return [(v["finding"], v["severity"], v["confidence"]) for v in values]


def judged(pasted: str) -> tuple[Finding, ...]:
    facts = machine.read(inputs.of_text(pasted), Expectation())
    return plan.findings_of(run(CHECKS, facts))


# ---- one that reads like a real one -------------------------------------------------------------


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_of_a_terminal_keeps_names_severities_confidences_and_words(
    width: int,
    unicode: bool,  # noqa: FBT001
) -> None:
    broken = samples.broken()
    page = text.render(broken, width=width, unicode=unicode)
    rest, symptoms, _ = reader.take(page, "t")
    assert rest.strip() == ""
    assert told(symptoms) == shown(broken)
    first, second, note = symptoms
    assert first.values["summary"] == broken.findings[0].summary
    assert second.values["summary"] == broken.findings[2].summary
    assert note.values["summary"] == broken.findings[3].summary


def test_colours_quotes_line_ends_and_indentation_do_not_matter() -> None:
    page = text.render(samples.broken(), width=80)
    plain = reader.take(page, "t")[1]
    lines = page.split("\n")
    for mangled in (
        text.render(samples.broken(), width=80, colour=True),
        "\r\n".join(lines),
        "\n".join(f"> {line}" for line in lines),
        "\n".join(f"> > {line}" for line in lines),
        "\n".join(f"    {line}" for line in lines),
        f"```\n{page}```\n",
        f"```console\n$ torchdoctor check\n{page}```\n",
        page.replace("✗", "&#10007;").replace("·", "&#183;"),
    ):
        rest, symptoms, _ = reader.take(mangled, "t")
        assert told(symptoms) == told(plain), mangled
        assert [s.values["summary"] for s in symptoms] == [s.values["summary"] for s in plain]
        assert rest.replace("$ torchdoctor check", "").strip() == ""


def test_what_stands_around_a_report_stays() -> None:
    page = text.render(samples.broken(), width=80)
    before, after = "It fails since Monday.", "Any idea?\n\n1. I tried pip\n2. and conda"
    rest, symptoms, _ = reader.take(f"{before}\n\n{page}\n{after}\n", "t")
    assert rest.split() == f"{before} {after}".split()
    assert told(symptoms) == shown(samples.broken())


def test_two_reports_in_one_text_are_two() -> None:
    page = text.render(samples.broken(), width=80)
    rest, symptoms, _ = reader.take(f"before\n\n{page}\nthen\n\n{page}\n", "t")
    assert rest.split() == ["before", "then"]
    assert told(symptoms) == 2 * shown(samples.broken())


def test_what_explains_a_finding_is_kept_where_it_is_printed() -> None:
    findings = (
        samples.finding("under", "warning"),
        samples.finding("folded", "warning", because_of=("under",)),
        samples.finding("worse", because_of=("folded",)),
    )
    page = text.render(replace(samples.broken(), findings=findings), width=60)
    symptoms = reader.take(page, "t")[1]
    assert [s.values.get("because_of") for s in symptoms] == [None, "folded under"]


def test_a_report_that_was_cut_off_gives_what_is_there() -> None:
    page = text.render(samples.broken(), width=80)
    for cut in range(page.index("certain") + 8, len(page), 7):
        rest, symptoms, _ = reader.take(page[:cut], "t")
        assert told(symptoms)[:1] == shown(samples.broken())[:1]
        assert not rest.strip() or len(rest.strip().splitlines()) == 1


def test_nothing_in_it_is_a_fact_of_the_machine() -> None:
    page = text.render(samples.broken(), width=80)
    facts = machine.read(inputs.of_text(page), Expectation())
    known = [
        name
        for name in type(facts).__slots__
        if name not in ("symptoms", "expectation", "remarks", "all_reduce")
        and not isinstance(getattr(facts, name), Unknown)
    ]
    assert known == []
    assert facts.remarks == ()


def test_what_else_is_in_the_text_is_judged_and_not_said_twice() -> None:
    listing = "ModuleNotFoundError: No module named 'torch'\n"
    findings = (
        samples.finding("torch-not-installed", "error", summary="There is no torch."),
        samples.finding("made-up", "warning"),
    )
    page = text.render(replace(samples.broken(), findings=findings), width=80)
    names = [f.name for f in judged(f"{page}\n\n$ python -c 'import torch'\n{listing}")]
    assert names.count("torch-not-installed") == 1
    assert names.count("made-up") == 1


# ---- healthy ones -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_a_healthy_report_names_torch_and_its_python(width: int) -> None:
    page = text.render(samples.healthy(), width=width)
    facts = machine.read(inputs.of_text(page), Expectation())
    assert isinstance(facts.torch, Build)
    assert isinstance(facts.interpreter, Interpreter)
    assert (facts.torch.version, facts.interpreter.version) == ("2.13.0+cpu", "3.11.7")
    assert [f for f in judged(page) if f.severity != "note"] == []
    assert [f for f in judged(markdown.render(samples.healthy())) if f.severity != "note"] == []


def test_prose_that_begins_like_a_healthy_report_is_prose() -> None:
    for prose in (
        "PyTorch works here: torch 2.13.0, but not on the server.\n",
        "- driver-too-old error\nx foo  error\n",
        "torchdoctor 0.1: it says nothing.\n",
        "I think it is likely (error - certain)\n",
    ):
        assert reader.take(prose, "t") == (prose, (), ())


# ---- any ----------------------------------------------------------------------------------------


@given(
    samples.reports(KEBABS) | samples.reports(FEW_NAMES),
    st.integers(40, 120),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_any_report_of_a_terminal_is_read_back(
    report: Report,
    width: int,
    unicode: bool,  # noqa: FBT001
    verbose: bool,  # noqa: FBT001
) -> None:
    page = text.render(report, width=width, unicode=unicode, verbose=verbose)
    if not report.findings:
        return
    rest, symptoms, _ = reader.take(page, "t")
    faults = [f.finding for f in report.faults if f.finding.severity != "note"]
    notes = [f.finding for f in report.faults if f.finding.severity == "note"]
    if not verbose:
        faults, notes = faults[: words.FEW_FAULTS], notes[: words.FEW_NOTES]
    rows = [(f.name, str(f.severity), str(f.confidence)) for f in faults]
    if faults:
        assert told(symptoms)[: len(rows)] == rows
        assert {name for name, _, _ in told(symptoms)[len(rows) :]} <= {f.name for f in notes}
        headline = page.split("\n\n", 1)[0]
        quoting = re.search(r"(?m)^ {0,3}[>|]", page)  # looks quoted, where no quotation mark is
        assert rest.strip() == "" or quoting or headline.count("\n") >= reader.MOST_ABOVE


@given(samples.reports(KEBABS) | samples.reports(FEW_NAMES), st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_report_in_markdown_is_read_back(report: Report, verbose: bool) -> None:  # noqa: FBT001
    page = markdown.render(report, verbose=verbose)
    rest, symptoms, _ = reader.take(page, "t")
    few = report.findings if verbose else report.findings[: words.FEW_FAULTS]
    assert told(symptoms) == [(f.name, str(f.severity), str(f.confidence)) for f in few]
    assert rest.strip() == ""
    known = {f.name for f in report.findings}
    for finding, symptom in zip(few, symptoms, strict=False):
        causes = [n for n in finding.because_of if n in known and n != finding.name]
        assert set(symptom.values.get("because_of", "").split()) >= set(causes)


@given(st.text(st.sampled_from("✗x! -\n·errorcertain()\\:a0>`*"), max_size=400))
@settings(max_examples=80, deadline=None)
def test_any_text_is_read_or_left(content: str) -> None:
    rest, symptoms, said = reader.take(content, "t")
    assert (rest == content) or symptoms
    assert not said


def test_a_long_text_of_titles_takes_time_in_its_length() -> None:
    def seconds(size: int) -> float:
        content = "✗ driver-too-old  error · certain\n  x\n\n" * size
        start = time.process_time()  # of this process: other load does not count
        reader.take(content, "t")
        return time.process_time() - start

    small = max(min(seconds(800) for _ in range(3)), 0.002)
    assert min(seconds(8000) for _ in range(3)) < 40 * small
