"""What tests of checks of runs share: symptoms read out of real lines."""

from __future__ import annotations

from collections.abc import Mapping

from torchdoctor.facts import Symptom
from torchdoctor.model import Outcome, Plan
from torchdoctor.reading.traceback import symptoms


def said(*lines: str) -> tuple[Symptom, ...]:
    """Return the messages that *lines*, one log, hold."""
    return symptoms("\n".join(lines), "log")


def names(outcome: Outcome) -> dict[str, str]:
    """Return the findings of *outcome* with their severity."""
    return {finding.name: finding.severity for finding in outcome.findings}


def first_command(plan: Plan) -> str:
    """Return what is to be typed first."""
    return plan.steps[0].step.commands.bash[0]


def summaries(outcome: Outcome) -> str:
    """Return what *outcome* says, as one text."""
    return " ".join(finding.summary for finding in outcome.findings)


Variables = Mapping[str, str]
