"""What ``torchdoctor install`` says: the build, what it was chosen for, what excludes the rest."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from torchdoctor import choose, constraints, diagnosis, install_steps
from torchdoctor.choose import Choice, Refusal
from torchdoctor.commands.install import INSTALLERS
from torchdoctor.constraints import Constraint, Wish
from torchdoctor.diagnosis import Look
from torchdoctor.facts import Facts, Unknown
from torchdoctor.model import Commands, Evidence, Finding, Plan, PlannedStep, Step
from torchdoctor.report import document
from torchdoctor.report.document import Detail, Report
from torchdoctor.tables import builds

KINDS = {"cuda": "CUDA", "rocm": "ROCm", "xpu": "XPU", "cpu": "CPU"}


def report(seen: Look, args: argparse.Namespace, wish: Wish, found: Choice | Refusal) -> Report:
    """Return the report on what was *found* for the machine that was *seen*."""
    facts = install_steps.of_installer(seen.facts, args.installer) if args.installer else seen.facts
    asked = constraints.of(facts, wish)
    data: dict[str, object] = {
        "constraints": [_constraint(c) for c in asked],
        "unknown": dict(_unknown(facts)),
    }
    where = "there" if args.inputs else "here"
    if isinstance(found, choose.Refusal):
        return _refused(seen, args, facts, found, data)
    there = install_steps.is_installed(facts, found)
    data |= {
        "choice": _choice(found),
        "installed": there,
        "alternatives": list(choose.alternatives(facts, wish, found)),
        "commands": {n: asdict(c) for n, c in _by_installer(seen.facts, found)},
        "refusal": None,
    }
    step = install_steps.step_for(facts, found, _why(found, asked))
    return document.build(
        target=diagnosis.target(seen, args.inputs),
        plan=_plan([step]),
        facts=facts,
        data={"install": data},
        headline=_headline(found, wish, where, there=there),
        details=[*_chosen_for(asked, facts), *_others(seen.facts, found, args)],
    )


def _refused(
    seen: Look, args: argparse.Namespace, facts: Facts, refusal: Refusal, data: dict[str, object]
) -> Report:
    steps = install_steps.way_out(facts, refusal)
    finding = Finding(
        "no-build-fits",
        "error",
        _said(refusal),
        tuple(
            Evidence(r.constraint.name, r.constraint.value, r.constraint.source)
            for r in refusal.reasons
        ),
        tuple(steps),
        family="build",
    )
    data |= {
        "choice": None,
        "installed": False,
        "alternatives": [],
        "commands": {},
        "refusal": {
            "reasons": [_constraint(r.constraint) | {"leaves": r.leaves} for r in refusal.reasons],
            "relaxation": [
                {"kind": c.kind, "says": c.says, "value": c.value} for c in refusal.relaxation
            ],
            "choice": _choice(refusal.choice) if refusal.choice else None,
        },
    }
    return document.build(
        target=diagnosis.target(seen, args.inputs),
        findings=[finding],
        plan=_plan(steps, finding),
        facts=facts,
        data={"install": data},
        details=_excluded(refusal),
    )


def _said(refusal: Refusal) -> str:
    parts = [
        f"{r.constraint.subject} leaves {r.leaves}"
        if r.leaves
        else f"{r.constraint.subject} is wanted"
        for r in refusal.reasons
    ]
    if not parts:
        return "No build of torch for this system is known."
    first = parts[0][0].upper() if parts[0].startswith("a ") else parts[0][0]
    return f"No build of torch fits: {first}{parts[0][1:]}{''.join(f', {p}' for p in parts[1:])}."


def _headline(choice: Choice, wish: Wish, where: str, *, there: bool) -> str:
    if not choice.release:
        return (
            f"torch for this Jetson is on NVIDIA's own index, {choice.index}; PyTorch's builds "
            "have no code for its GPU."
        )
    what = f"torch {choice.versions['torch']}"
    which = "the newest" if not wish.torch else f"the newest of {wish.torch}"
    if there:
        return f"{what} is installed {where} and is {which} that fits."
    return f"{what} is {which} that fits {where}."


def _why(choice: Choice, asked: tuple[Constraint, ...]) -> str:
    subjects = [c.subject for c in asked if c.name not in ("accelerator", "torch")]
    kind = KINDS[builds.kind_of(choice.tag)]
    if not subjects:
        return f"Nothing is known of the machine, so this is the newest {kind} build."
    return f"A {kind} build that does for {install_steps.listed(subjects)}.".replace(
        "A XPU", "An XPU"
    )


def _chosen_for(asked: tuple[Constraint, ...], facts: Facts) -> Iterator[Detail]:
    for constraint in asked:
        yield Detail("Chosen for", f"{constraint.subject}  ({constraint.source})")
    for name, reason in _unknown(facts):
        yield Detail("Not known, so it decided nothing", f"{name}  ({reason})")


def _excluded(refusal: Refusal) -> Iterator[Detail]:
    for reason in refusal.reasons:
        constraint = reason.constraint
        leaves = f": leaves {reason.leaves}" if reason.leaves else ""
        yield Detail(
            "What excludes the rest", f"{constraint.subject}{leaves}  ({constraint.source})"
        )
    for change in refusal.relaxation:
        yield Detail("What would have to be given up", change.says)


def _others(facts: Facts, choice: Choice, args: argparse.Namespace) -> Iterator[Detail]:
    """Give the commands of every installer, for those who want them all."""
    if args.installer:
        return
    for name, commands in _by_installer(facts, choice):
        for line in commands.bash:
            yield Detail(f"With {name}", line, command=True, more=True)


def _by_installer(facts: Facts, choice: Choice) -> Iterator[tuple[str, Commands]]:
    for name in INSTALLERS:
        step = install_steps.step_for(install_steps.of_installer(facts, name), choice, "")
        yield name, step.commands


def _unknown(facts: Facts) -> Iterator[tuple[str, str]]:
    for name in ("platform", "interpreter", "driver", "gpus"):
        value = getattr(facts, name)
        if isinstance(value, Unknown):
            yield name, value.reason


def _plan(found: list[Step], finding: Finding | None = None) -> Plan:
    cleared = (finding.name,) if finding else ()
    remaining = (finding,) if finding and not found else ()
    planned = tuple(
        PlannedStep(
            step, cleared if step is found[-1] else (), ("torchdoctor check",)[: step is found[-1]]
        )
        for step in found
    )
    return Plan(planned, "broken" if remaining else "healthy", remaining)


def _constraint(constraint: Constraint) -> dict[str, object]:
    return {
        "name": constraint.name,
        "subject": constraint.subject,
        "value": constraint.value,
        "from": constraint.source,
    }


def _choice(choice: Choice) -> dict[str, object]:
    return {
        "torch": choice.release or None,
        "build": choice.tag,
        "index": choice.index,
        "python": choice.python,
        "packages": [
            {"name": p.name, "version": p.version or None, "requirement": p.requirement}
            for p in choice.packages
        ],
        "beside": [
            {
                "name": b.name,
                "version": b.version or None,
                "requirement": b.requirement,
                "index": b.index,
                "without_dependencies": b.alone,
                "compiled_here": b.compiled,
            }
            for b in choice.beside
        ],
        "variables": dict(choice.variables),
    }
