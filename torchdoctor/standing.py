"""Which findings stand after a step although the checks no longer see them.

Most steps make what was tried unknown: the import, the messages. A finding that rests on them is
out of sight then, whatever the step did. It is cured only when the step is one of its own or does
all that one of its own does, when what explains it was cured, or when the other facts alone say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter

from torchdoctor import effects
from torchdoctor.facts import Distribution, Facts, Interpreter, Unknown, Windows
from torchdoctor.model import Finding, Step

Puts = Callable[[Step, Facts], Mapping[str, str]]
"""What a step puts in place anew on facts, as :func:`touched` has it."""

# They follow from the others, or say what was tried.
_NOT_TOUCHED = frozenset(
    (
        *("trial", "companion_trials", "runtime", "trial_after", "symptoms", "windows"),
        "all_reduce",
        *("records", "modules", "local_modules", "leftovers", "search_path", "remarks"),
    )
)
_TOUCHED = tuple(f.name for f in fields(Facts) if f.name not in _NOT_TOUCHED)
_touched_of = attrgetter(*_TOUCHED)
_OF_THE_MACHINE = frozenset(
    (
        *("platform", "cpu", "container", "limits", "driver", "gpus", "device_nodes", "kernel"),
        *("toolkits", "build_tools", "expectation"),
    )
)
_WITHIN = frozenset(("files", "versions", "environment"))
"""Families of findings about an environment in itself: whatever is put in anew is right."""
_SOME_PYTHON = Interpreter("", "", "", "", "")


def standing(  # noqa: PLR0913 - it is asked once, with all there is
    gone: Sequence[Finding],
    step: Step,
    before: Facts,
    *,
    finds: Callable[[Finding], bool],
    offered: Callable[[Finding], Finding] | None = None,
    puts: Puts | None = None,
) -> tuple[Finding, ...]:
    """Return those of *gone* that *step* did not cure.

    *gone* are findings that the checks do not make any more once *step* is done on the facts
    *before*. *finds* tells whether a check still makes one of that name on the facts after it, with
    all that was tried before the first step; *offered* returns a finding with what is offered for
    it by now, too: it is dear, so it is asked last. *puts* stands in for :func:`touched`.
    """
    puts = puts or touched
    stand = [
        finding
        for finding in gone
        if not cures(step, finding, before, puts) and finds(finding)
        if not (offered and cures(step, offered(finding), before, puts))
    ]
    cured = {f.name for f in gone} - {f.name for f in stand}
    while explained := [f for f in stand if cured.intersection(f.because_of)]:
        cured.update(f.name for f in explained)
        stand = [f for f in stand if f not in explained]
    return tuple(stand)


def is_new_torch(done: Mapping[str, str]) -> bool:
    """Tell whether another torch or another interpreter is there, to be tried anew."""
    return "torch" in done or "interpreter" in done


def undoes(done: Mapping[str, str], before: Mapping[str, str]) -> bool:
    """Tell whether a step puts something else where one *before* it did.

    What only was not taken into a new environment may be put into it.
    """
    fresh = "interpreter" in before
    return any(
        before[name] != value and (before[name] or not fresh)
        for name, value in done.items()
        if name in before
    )


def cures(step: Step, finding: Finding, facts: Facts, puts: Puts) -> bool:
    """Tell whether *step* is offered for *finding*, or does all that one of those does."""
    if any(own.name == step.name for own in finding.steps):
        return True
    if not finding.steps or not (done := puts(step, facts)):
        return False
    whichever = finding.family in _WITHIN
    return any(_covers(done, puts(own, facts), whichever=whichever) for own in finding.steps)


def _covers(done: Mapping[str, str], wanted: Mapping[str, str], *, whichever: bool) -> bool:
    """Tell whether all that is *wanted* was *done*; a new environment does what is in one."""
    lacking = [
        name
        for name, value in wanted.items()
        if name not in done or (done[name] != value and not whichever)
    ]
    if "interpreter" in done and whichever:
        return not any(name in _OF_THE_MACHINE or name[0] == "$" for name in lacking)
    return bool(wanted) and not lacking


def touched(
    step: Step, facts: Facts, effect: Callable[[Step, Facts], Facts] | None = None
) -> dict[str, str]:
    """Return what *step* puts in place anew, or takes away, and what is there then.

    Distributions with their versions, variables as ``$NAME`` with their values, and other facts.
    *effect* stands in for that of the step, where it is known what it does to *facts*.
    """
    stand_ins = {"distributions": (), "variables": {}, "interpreter": _SOME_PYTHON}
    known = {n: s for n, s in stand_ins.items() if isinstance(getattr(facts, n), Unknown)}
    base = facts.but(**known) if known else facts
    after = step.effect(base) if known or effect is None else effect(step, facts)
    found: dict[str, str] = {}
    for name, old, new in zip(_TOUCHED, _touched_of(base), _touched_of(after), strict=True):
        if old is new:
            continue
        if name == "distributions" and isinstance(new, tuple):
            found |= _others(old, new)
        elif name == "variables" and isinstance(new, Mapping):
            both = {**old, **new}
            found |= {f"${k}": new.get(k, "") for k in both if old.get(k) != new.get(k)}
        else:
            found.setdefault(name, "")
    return found


def _others(old: tuple[Distribution, ...], new: tuple[Distribution, ...]) -> dict[str, str]:
    """Return those that came, were put in anew, or went."""
    before, after = {id(d) for d in old}, {id(d) for d in new}
    gone = {d.name: "" for d in old if id(d) not in after}
    return gone | {d.name: d.version for d in new if id(d) not in before}


def as_tried(before: Facts, after: Facts) -> Facts:
    """Return the facts *after* some steps with what was tried *before* them."""
    kept: dict[str, object] = {}
    tried = ("trial", "companion_trials", "runtime", "trial_after", "symptoms", "all_reduce")
    for name in tried:
        old = getattr(before, name)
        if getattr(after, name) is not old:
            kept[name] = old
    old, new = before.windows, after.windows
    if isinstance(old, Windows) and isinstance(new, Windows):
        parts = {
            f.name: getattr(old, f.name)
            for f in fields(Windows)
            if getattr(new, f.name) is effects.TO_TRY and getattr(old, f.name) is not effects.TO_TRY
        }
        if parts:
            kept["windows"] = replace(new, **parts)
    return after.but(**kept) if kept else after
