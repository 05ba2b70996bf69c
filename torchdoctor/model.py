"""What is said of a machine: findings, the evidence for each, the steps that cure, the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.facts import Facts

Severity = Literal["error", "warning", "note"]
Confidence = Literal["certain", "likely", "possible"]
Status = Literal["clear", "found", "unknown", "moot", "crashed"]
Verdict = Literal["healthy", "degraded", "broken", "unknown"]
Need = Literal["admin", "reboot", "network", "restart-shell", "restart-container"]
Effect = Callable[["Facts"], "Facts"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
CONFIDENCES: tuple[Confidence, ...] = ("certain", "likely", "possible")
REPORTED = "report"
"""The family of findings that were read from a report: they have their order, and no steps."""


class DoctorError(Exception):
    """Something the user can mend: wrong usage or unreadable input. Exit code 2."""

    def __init__(self, message: str, *, file: str | None = None, kind: str = "input") -> None:
        """Keep the one-line *message*, the *file* it is about, and usage or input as *kind*."""
        super().__init__(message)
        self.message = message
        self.file = file
        self.kind = kind


class CannotTell(Exception):  # noqa: N818 - it is an answer, not an error
    """Raised by a check whose facts are there but do not decide the question."""


class Layer(IntEnum):
    """Where a step acts. Steps that do not touch each other are done in this order."""

    HARDWARE = 0
    DRIVER = 1
    RUNTIME = 2
    LAUNCHER = 3
    ENVIRONMENT = 4
    PACKAGES = 5
    VARIABLES = 6
    SCRIPT = 7


@dataclass(frozen=True, slots=True)
class Commands:
    """The same thing to type in each shell, one line an entry. Comments are not allowed."""

    bash: tuple[str, ...] = ()
    powershell: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is anything to type at all."""
        return bool(self.bash or self.powershell or self.cmd)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact behind a finding: its dotted name, its value as text, and where it came from."""

    fact: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do. Two steps are the same when their names are.

    ``effect`` is what the step does to the facts, never to the findings; ``cost`` weighs
    steps against each other (see steps.py for the scale); ``after`` names steps that have to
    be done before this one when both are in a plan.
    """

    name: str
    title: str
    why: str
    layer: Layer
    cost: int
    effect: Effect = field(compare=False, repr=False)
    commands: Commands = Commands()
    needs: tuple[Need, ...] = ()
    deletes: bool = False
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file; line and column count from 1."""

    file: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, named by its root cause, with the facts that show it.

    ``summary`` is one sentence with the actual values. ``because_of`` names findings that
    explain this one, when they are found too. ``steps`` are alternatives: any one cures it.
    """

    name: str
    severity: Severity
    summary: str
    evidence: tuple[Evidence, ...]
    steps: tuple[Step, ...] = ()
    confidence: Confidence = "certain"
    because_of: tuple[str, ...] = ()
    family: str = ""
    location: Location | None = None
    where: Mapping[str, int | str] | None = None

    def of(self, family: str) -> Finding:
        """Return this finding as one of *family*."""
        return Finding(  # replace() takes several times as long, and a plan asks thousands of times
            self.name,
            self.severity,
            self.summary,
            self.evidence,
            self.steps,
            self.confidence,
            self.because_of,
            family,
            self.location,
            self.where,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one check: its findings, or why it could not tell."""

    check: str
    status: Status
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step in its place in a plan, with the names of the findings that it clears."""

    step: Step
    clears: tuple[str, ...]
    verify: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The cheapest steps that cure every error and warning, in order, and what would remain."""

    steps: tuple[PlannedStep, ...] = ()
    verdict: Verdict = "healthy"
    remaining: tuple[Finding, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


def verdict(findings: tuple[Finding, ...], *, essential_unknown: bool = False) -> Verdict:
    """Return the verdict on a machine with *findings*.

    ``essential_unknown`` says that something essential could not be told, such as whether
    torch imports on a live target.
    """
    severities = {finding.severity for finding in findings}
    if "error" in severities:
        return "broken"
    if "warning" in severities:
        return "degraded"
    return "unknown" if essential_unknown else "healthy"
