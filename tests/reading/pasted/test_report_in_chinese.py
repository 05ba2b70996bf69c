"""Our own report in Chinese, pasted: it is recognised and read like the English one."""

# ruff: noqa: RUF001 - the punctuation of Chinese is meant

from __future__ import annotations

import pytest

from tests.corpus_score import CHECKS, Case, cases
from tests.reading.pasted.test_report import WIDTHS, judged, shown, told
from tests.report import samples
from torchdoctor import inputs, locale, plan
from torchdoctor.facts import Build, Expectation, Interpreter
from torchdoctor.reading import machine
from torchdoctor.reading.pasted import report as reader
from torchdoctor.reading.pasted import report_words
from torchdoctor.report import document, markdown, text
from torchdoctor.report.translate import translated
from torchdoctor.run import run

SAY = locale.speaker(locale.CHINESE).say
CASES = [case for case in cases() if not case.healthy]
FEW = CASES[:: max(len(CASES) // 4, 1)]


def pages(report: document.Report, width: int = 80) -> dict[str, str]:
    """Return *report* in Chinese, as a terminal and as an issue have it."""
    said = translated(report, SAY)
    return {
        "text": text.render(said, width=width, say=SAY),
        "everything": text.render(said, width=width, say=SAY, verbose=True),
        "markdown": markdown.render(said, say=SAY),
    }


def of_case(case: Case) -> document.Report:
    facts = machine.read(inputs.of_text(case.file.read_text("utf-8")), Expectation())
    outcomes = run(CHECKS, facts)
    return document.build(
        target=document.Target("text", ("report.txt",)),
        findings=plan.findings_of(outcomes),
        outcomes=outcomes,
        plan=plan.make(CHECKS, facts, outcomes),
        facts=facts,
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_names_severities_confidences_and_words_are_kept(width: int) -> None:
    broken = samples.broken()
    for form, page in pages(broken, width).items():
        rest, symptoms, _ = reader.take(page, "t")
        assert rest.strip() == ""
        if form == "markdown":
            assert [f.name for f in broken.findings] == [name for name, _, _ in told(symptoms)]
        else:
            assert told(symptoms) == shown(broken)
            spaced = symptoms[0].values["summary"].replace(" ", "")
            assert spaced == SAY(broken.findings[0].summary).replace(" ", "")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_healthy_report_names_torch_and_its_python(width: int) -> None:
    for page in pages(samples.healthy(), width).values():
        facts = machine.read(inputs.of_text(page), Expectation())
        assert [f for f in judged(page) if f.severity != "note"] == []
        if width > 60:  # its first line is whole
            assert isinstance(facts.torch, Build)
            assert isinstance(facts.interpreter, Interpreter)
            assert (facts.torch.version, facts.interpreter.version) == ("2.13.0+cpu", "3.11.7")


def same_first_finding(case: Case) -> None:
    report = of_case(case)
    first = next((f for f in report.findings if f.severity != "note"), None)
    if first is None:
        return
    for form, page in pages(report).items():
        findings = judged(f"有人发来了这个：\n\n{page}\n谢谢\n")
        above = [f for f in findings if f.severity != "note"]
        assert above, f"{case.id} {form}"
        seen = (above[0].name, above[0].severity, above[0].confidence)
        assert seen == (first.name, first.severity, first.confidence), f"{case.id} {form}"


@pytest.mark.parametrize("case", FEW, ids=lambda case: case.id)
def test_a_pasted_report_leads_to_the_same_first_finding(case: Case) -> None:
    same_first_finding(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_pasted_report_leads_to_the_same_first_finding(case: Case) -> None:
    same_first_finding(case)


def test_a_line_that_is_no_report_stays() -> None:
    for line in ("训练在这里卡住了。", "错误", "torch 2.9.1 的错误：没有说明", "  - 数据重复", ""):
        assert report_words.in_english(line) == line
        assert reader.take(f"{line}\n", "t") == (f"{line}\n", (), ())


def test_an_english_line_stays() -> None:
    for line in text.render(samples.broken(), width=80).splitlines():
        assert report_words.in_english(line) == line
