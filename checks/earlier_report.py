"""A report of torchdoctor that was pasted is taken at its word.

What somebody sends may be the report itself, copied from a terminal or out of an issue. The machine
it is about cannot be looked at again, so that its findings stand as they are, with the severity and
the confidence that it printed; the steps are those that it printed, too. A finding that the rest of
the text leads to by itself is not repeated.

earlier-report: the report says that something is wrong, and the part that says what is missing. Ask
for the whole of it, or for what ``torchdoctor check --format markdown`` prints: that one holds a
redacted snapshot, from which everything can be judged anew.

Source: torchdoctor/reading/pasted/report.py
"""

from collections.abc import Iterator, Mapping

from torchdoctor.facts import Symptom, Unknown, items_of
from torchdoctor.model import (
    CONFIDENCES,
    REPORTED,
    SEVERITIES,
    Evidence,
    Finding,
    Severity,
)

FAMILY = REPORTED
FINDS = ("earlier-report",)
ECHOES = True
WRONG: Mapping[str, Severity] = {"broken": "error", "degraded": "warning"}


def check(symptoms: tuple[Symptom, ...] | Unknown) -> Iterator[Finding]:
    """Say what a report said."""
    known = items_of(symptoms)
    for symptom in known:
        if symptom.name == "reported":
            yield from _finding(symptom)


def _finding(symptom: Symptom) -> Iterator[Finding]:
    values = symptom.values
    severity, confidence = values.get("severity"), values.get("confidence")
    if severity in SEVERITIES and confidence in CONFIDENCES and values.get("finding"):
        yield Finding(
            values["finding"],
            severity,
            values.get("summary") or f"A report says {values['finding']}.",
            (Evidence("report", f"{severity}, {confidence}", symptom.source),),
            confidence=confidence,
            because_of=tuple(values.get("because_of", "").split()),
        )
    elif wrong := WRONG.get(values.get("verdict", "")):
        yield Finding(
            "earlier-report",
            wrong,
            values.get("summary") or f"A report says {values['verdict']}.",
            (Evidence("report", f"verdict {values['verdict']}, no findings", symptom.source),),
        )
