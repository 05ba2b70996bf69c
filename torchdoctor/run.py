"""Put facts before checks, each after those it leans on."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

from torchdoctor.facts import Facts, Unknown
from torchdoctor.model import CannotTell, Finding, Outcome
from torchdoctor.registry import Check


def run(
    checks: Mapping[str, Check],
    facts: Facts,
    *,
    order: Sequence[str] | None = None,
    look: Callable[[Check, Facts], Outcome] | None = None,
) -> tuple[Outcome, ...]:
    """Run every check on *facts* and return one outcome for each, in the order they ran.

    *order* is that of :func:`in_order`, where it is known; *look* stands in for :func:`looked`.
    """
    outcomes: dict[str, Outcome] = {}
    for name in order or in_order(checks):
        check = checks[name]
        if first := next((n for n in check.after if _stands_in_the_way(outcomes.get(n))), None):
            outcome = Outcome(name, "moot", reason=f"waits for {first}")
        else:
            outcome = (look or looked)(check, facts)
        outcomes[name] = _news(outcome, outcomes.values()) if check.echoes else outcome
    return tuple(outcomes.values())


def in_order(checks: Mapping[str, Check]) -> tuple[str, ...]:
    """Return the names of *checks*, each after those that it names in AFTER; echoes come last."""
    graph = {name: [a for a in check.after if a in checks] for name, check in checks.items()}
    for name in (n for n, check in checks.items() if check.echoes):
        graph[name] = [other for other, check in checks.items() if not check.echoes]
    return tuple(TopologicalSorter(graph).static_order())


def looked(check: Check, facts: Facts) -> Outcome:
    """Return what *check* alone says of *facts*; never raises."""
    start = time.perf_counter()

    def outcome(status: str, findings: tuple[Finding, ...] = (), reason: str = "") -> Outcome:
        spent = time.perf_counter() - start
        return Outcome(check.name, status, findings, reason, spent)  # type: ignore[arg-type]

    given = {name: facts if name == "facts" else getattr(facts, name) for name in check.reads}
    if lacking := [
        f"{name}: {value.reason}"
        for name, value in given.items()
        if isinstance(value, Unknown) and name not in check.bears_unknown
    ]:
        return outcome("unknown", reason="; ".join(lacking))
    found: list[Finding] = []
    try:
        found.extend(f.of(check.family) for f in check.run(**given))
    except CannotTell as answer:
        return outcome("found" if found else "unknown", tuple(found), str(answer))
    except Exception:  # noqa: BLE001 - a broken check must not hide the other answers
        return outcome("crashed", tuple(found), traceback.format_exc())
    return outcome("found" if found else "clear", tuple(found))


def _news(outcome: Outcome, before: Iterable[Outcome]) -> Outcome:
    """Return *outcome* without findings of a name that one *before* has."""
    known = {finding.name for other in before for finding in other.findings}
    kept = tuple(finding for finding in outcome.findings if finding.name not in known)
    status = outcome.status if kept or outcome.status != "found" else "clear"
    return replace(outcome, status=status, findings=kept)


def _stands_in_the_way(outcome: Outcome | None) -> bool:
    return outcome is not None and any(f.severity == "error" for f in outcome.findings)
