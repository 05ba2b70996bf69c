"""What a report says, before anyone decides how it looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from torchdoctor import model
from torchdoctor.facts import Build, Facts, ImportTrial, Interpreter, Runtime, Unknown
from torchdoctor.model import Finding, Outcome, Plan, Severity, Verdict
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.snapshot import Snapshot

Source = Literal["live", "snapshot", "text", "folder", "script", "run"]
FailureKind = Literal["usage", "input", "internal"]

_GRAVITY: Mapping[Severity, int] = {name: rank for rank, name in enumerate(model.SEVERITIES)}


@dataclass(frozen=True, slots=True)
class Target:
    """What was looked at. ``None`` where the input does not say."""

    source: Source
    inputs: tuple[str, ...] = ()
    """The files, ``-`` for stdin; empty for a live machine."""
    os: str | None = None
    python: str | None = None
    collected_at: str | None = None
    """ISO 8601."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no diagnosis: wrong usage, unreadable input, or a fault of our own."""

    kind: FailureKind
    message: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A finding that nothing else explains, with those that it explains."""

    finding: Finding
    consequences: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Detail:
    """A line that a verb has to say beside findings and plan, under a heading."""

    heading: str
    text: str
    command: bool = False
    """Whether it is something to type, which is shown as it is."""
    more: bool = False
    """Whether it is shown only when everything is."""
    table: bool = False
    """Whether it is a row of a table, whose columns are kept."""
    drawn: bool = False
    """Whether a page says the same by what it draws of ``groups``."""


@dataclass(frozen=True, slots=True)
class Way:
    """What cures some machines of a group: a plan, as the first of them has it."""

    plan: Plan
    count: int
    """Of how many machines it is the plan."""
    first: str
    alike: bool
    """Whether all of them have the same commands to the letter."""


@dataclass(frozen=True, slots=True)
class Group:
    """Machines with the same root causes, or with none."""

    faults: tuple[Fault, ...]
    """As the first of the machines has them."""
    verdict: Verdict
    count: int
    machines: tuple[str, ...]
    """The first of them."""
    ways: tuple[Way, ...] = ()
    planned: int = 0
    """For how many of the machines a plan was made."""
    also: tuple[tuple[str, int], ...] = ()
    """What else is found, by name, on how many of them."""
    differences: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    """In which facts they differ: each value, and how many have it."""
    more_differences: int = 0
    several: bool = False
    """Whether these are the machines of more causes than are kept apart."""

    @property
    def causes(self) -> tuple[str, ...]:
        """Return the names of the root causes, the first to fix first."""
        return tuple(dict.fromkeys(fault.finding.name for fault in self.faults))


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a report in any format may say."""

    target: Target
    verdict: Verdict
    headline: str
    """One sentence that is worth reading alone."""
    findings: tuple[Finding, ...] = ()
    """The first is the one to fix first."""
    outcomes: tuple[Outcome, ...] = ()
    plan: Plan = field(default_factory=Plan)
    data: Mapping[str, object] = field(default_factory=dict)
    details: tuple[Detail, ...] = ()
    """What people are told of ``data``."""
    error: Failure | None = None
    remarks: tuple[str, ...] = ()
    """What of the input could not be read, or contradicts itself."""
    groups: tuple[Group, ...] = ()
    """Of many machines, those with the same fault."""
    unread: tuple[tuple[str, str], ...] = ()
    """Of many inputs, those that could not be read, and why."""
    snapshot: Snapshot | None = None
    """What the report was made from, redacted, for a format that others read; None for texts."""

    @property
    def verdict_after_plan(self) -> Verdict:
        """Return the verdict once the plan is done: today's when there is nothing to do."""
        return self.plan.verdict if self.plan.steps else self.verdict

    @property
    def findings_after_plan(self) -> tuple[Finding, ...]:
        """Return what would remain once the plan is done."""
        return self.plan.remaining if self.plan.steps else self.findings

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return the findings with each consequence folded under its cause, order kept."""
        return folded(self.findings)


def build(  # noqa: PLR0913 - one keyword for each part of a report
    *,
    target: Target,
    findings: Iterable[Finding] = (),
    outcomes: Iterable[Outcome] = (),
    plan: Plan | None = None,
    essential_unknown: bool = False,
    data: Mapping[str, object] | None = None,
    facts: Facts | None = None,
    headline: str = "",
    details: Iterable[Detail] = (),
    snapshot: Snapshot | None = None,
) -> Report:
    """Return the report on *target*.

    *findings* come in the order in which they should be fixed. *facts* let the first line name
    what works; *headline* takes the place of the first line that would be made.
    """
    ordered, ran = tuple(findings), tuple(outcomes)
    verdict = model.verdict(ordered, essential_unknown=essential_unknown)
    return Report(
        target=target,
        verdict=verdict,
        headline=headline or _headline(verdict, ordered, ran, target, facts or Facts()),
        findings=ordered,
        outcomes=ran,
        plan=Plan() if plan is None else plan,
        data=data or {},
        remarks=facts.remarks if facts else (),
        details=tuple(details),
        snapshot=snapshot,
    )


def failure(kind: FailureKind, message: str, file: str | None = None) -> Report:
    """Return the report of having no diagnosis, because of *message*, about *file*."""
    named = message if file is None or file in message else f"{file}: {message}"
    return Report(
        target=Target("live") if file is None else Target("text", inputs=(file,)),
        verdict="unknown",
        headline=named,
        error=Failure(kind, message, file),
    )


def folded(findings: tuple[Finding, ...]) -> tuple[Fault, ...]:
    """Return *findings* with each one under the first of its causes that is among them.

    A finding is never hidden under a less severe one. In a circle of causes the first stays up.
    """
    first_called: dict[str, int] = {}
    for index, finding in enumerate(findings):
        first_called.setdefault(finding.name, index)
    cause = [_cause(finding, findings, first_called) for finding in findings]
    roots = _roots(cause)
    under: dict[int, list[Finding]] = {}
    for index, root in enumerate(roots):
        if root != index:
            under.setdefault(root, []).append(findings[index])
    return tuple(
        Fault(findings[index], tuple(under.get(index, ())))
        for index, root in enumerate(roots)
        if root == index
    )


def _cause(
    finding: Finding, findings: tuple[Finding, ...], first_called: Mapping[str, int]
) -> int | None:
    for name in finding.because_of:
        other = first_called.get(name)
        if other is None or findings[other].name == finding.name:
            continue
        if _GRAVITY[findings[other].severity] <= _GRAVITY[finding.severity]:
            return other
    return None


def _roots(cause: list[int | None]) -> list[int]:
    """Return for each index the one at the end of its chain of causes."""
    roots: dict[int, int] = {}
    for start in range(len(cause)):
        # A loop, not recursion: a chain may be longer than Python's stack.
        chain: list[int] = []
        on_chain: set[int] = set()
        at = start
        while at not in roots and at not in on_chain and (above := cause[at]) is not None:
            chain.append(at)
            on_chain.add(at)
            at = above
        root = roots.get(at, min(chain[chain.index(at) :]) if at in on_chain else at)
        for index in (*chain, at):
            roots.setdefault(index, root)
    return [roots[index] for index in range(len(cause))]


def _headline(
    verdict: Verdict,
    findings: tuple[Finding, ...],
    outcomes: tuple[Outcome, ...],
    target: Target,
    facts: Facts,
) -> str:
    if faults := [f.finding for f in folded(findings) if f.finding.severity != "note"]:
        others = f" And {len(faults) - 1} more." if len(faults) > 1 else ""
        return f"{faults[0].summary}{others}"
    where = "here" if target.source in {"live", "script", "run"} else "there"
    if verdict == "unknown":
        return f"Cannot tell whether PyTorch works {where}: {_what_is_missing(outcomes, facts)}."
    works = isinstance(facts.trial, ImportTrial) and facts.trial.outcome == "imported"
    torch = _torch(facts)
    if works and torch:
        return f"PyTorch works {where}: {torch}{_accelerator(facts)}."
    return "Nothing was found that stands in the way" + (f": {torch}." if torch else ".")


def _what_is_missing(outcomes: tuple[Outcome, ...], facts: Facts) -> str:
    if isinstance(facts.trial, Unknown) and facts.trial != Unknown():
        return f"the import of torch was not seen ({facts.trial.reason})"
    lacking = next((o for o in outcomes if o.status == "unknown" and o.reason), None)
    return f"{lacking.check} ({lacking.reason})" if lacking else "what decides it was not collected"


def _torch(facts: Facts) -> str:
    version = next(
        (
            source.version
            for source in (facts.torch, facts.runtime, facts.trial)
            if isinstance(source, Build | Runtime | ImportTrial) and source.version
        ),
        None,
    )
    if version is None:
        return ""
    python = facts.interpreter
    return f"torch {version}" + (
        f" (Python {python.version})" if isinstance(python, Interpreter) else ""
    )


def _accelerator(facts: Facts) -> str:
    runtime = facts.runtime
    if isinstance(runtime, Unknown):
        return ""
    if runtime.available:
        kind = f"ROCm {runtime.hip}" if runtime.hip else f"CUDA {runtime.cuda or ''}".rstrip()
        names = sorted({device.name for device in runtime.devices})
        count = f"{len(runtime.devices)} x " if len(runtime.devices) > 1 else ""
        return f", {kind}" + (f" on {count}{' and '.join(names)}" if names else "")
    if runtime.xpu:
        return ", XPU"
    return ", MPS" if runtime.mps else ", CPU"
