"""A report that was pasted is taken at its word, once."""

from __future__ import annotations

from tests.conftest import Judge
from torchdoctor import plan
from torchdoctor.facts import Facts, Symptom, Unknown
from torchdoctor.model import Finding
from torchdoctor.registry import load
from torchdoctor.run import run

TOO_OLD = {
    "finding": "driver-too-old",
    "severity": "error",
    "confidence": "likely",
    "summary": "The driver is 470.57.02.",
}


def reported(**values: str) -> Symptom:
    return Symptom("reported", values, "issue.txt", "✗ driver-too-old  error · likely")


def test_a_finding_stands_with_the_severity_the_confidence_and_the_words_of_the_report(
    judge: Judge,
) -> None:
    (finding,) = judge(symptoms=(reported(**TOO_OLD, because_of="a b"),)).findings
    assert (finding.name, finding.severity, finding.confidence) == (
        "driver-too-old",
        "error",
        "likely",
    )
    assert finding.summary == "The driver is 470.57.02."
    assert finding.because_of == ("a", "b")
    assert finding.evidence[0].source == "issue.txt"
    assert finding.steps == ()


def test_a_report_that_lost_its_findings_says_so(judge: Judge) -> None:
    (finding,) = judge(symptoms=(reported(verdict="broken", summary="It is."),)).findings
    assert (finding.name, finding.severity, finding.summary) == (
        "earlier-report",
        "error",
        "It is.",
    )


def test_a_healthy_report_and_another_symptom_are_quiet(judge: Judge) -> None:
    symptoms = (reported(verdict="healthy"), Symptom("torch-missing", {"finding": "x"}))
    assert judge(symptoms=symptoms).status == "clear"


def test_a_severity_that_there_is_not_makes_no_finding(judge: Judge) -> None:
    assert judge(symptoms=(reported(**{**TOO_OLD, "severity": "fatal"}),)).status == "clear"


def test_without_any_text_it_is_clear(judge: Judge) -> None:
    assert judge(symptoms=Unknown("not tried")).status == "clear"


def test_what_another_check_finds_is_not_repeated_before_or_after_a_step() -> None:
    checks = {name: load(name) for name in ("earlier_report", "torch_present")}
    symptoms = (
        reported(**{**TOO_OLD, "finding": "torch-not-installed"}),
        reported(**{**TOO_OLD, "finding": "made-up"}),
    )
    facts = Facts(torch=None, distributions=(), symptoms=symptoms)
    outcomes = run({c.name: c for c in checks.values()}, facts)
    found: tuple[Finding, ...] = plan.findings_of(outcomes)
    assert [f.name for f in found].count("torch-not-installed") == 1
    assert [f.name for f in found if f.family == "report"] == ["made-up"]
    made = plan.make({c.name: c for c in checks.values()}, facts, outcomes)
    assert [f.name for f in made.remaining] == ["made-up"]
    assert len(made.steps) == 1
