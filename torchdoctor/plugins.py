"""Checks that other packages bring along: the entry points of the group ``torchdoctor.checks``.

Each names a module like those of checks/. One that cannot be loaded is a check that crashed;
one that has the name of ours is not run. Nothing of this stops ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, cast

from torchdoctor.facts import Facts

if TYPE_CHECKING:
    from torchdoctor.model import Finding, Step
    from torchdoctor.registry import Check

GROUP = "torchdoctor.checks"
FAMILY = "plug-in"


def checks(taken: Collection[str], path: Iterable[str] | None = None) -> Iterator[Check]:
    """Yield the checks of the packages on *path* (default: ``sys.path``).

    One that is named like one of *taken*, or cannot be loaded, is a check that says so by
    crashing.
    """
    folders = list(sys.path if path is None else path)
    if not any(map(_mentions, folders)):  # importlib.metadata costs a quarter of a quick check
        return
    from importlib.metadata import EntryPoint, distributions  # noqa: PLC0415

    points: dict[str, EntryPoint] = {}
    for distribution in distributions(path=folders):
        for point in distribution.entry_points.select(group=GROUP):
            points.setdefault(point.name, point)
    for name, point in sorted(points.items()):
        yield _check(name, point.value, point.load, taken)


def _mentions(folder: str) -> bool:
    """Tell whether a distribution in *folder* has entry points of our group."""
    try:
        with os.scandir(folder or ".") as entries:
            infos = [e.path for e in entries if e.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    return any(map(_has_group, infos))


def _has_group(info: str) -> bool:
    try:
        with open(os.path.join(info, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123
            return GROUP.encode() in file.read()
    except OSError:
        return False


def _check(name: str, value: str, load: Callable[[], object], taken: Collection[str]) -> Check:
    from torchdoctor import registry  # noqa: PLC0415 - it asks for us

    if name in taken:
        return _broken(name, f"the plug-in {value} has the name of the check {name}; rename it")
    try:
        check = registry.of(load(), name)
    except Exception as error:  # noqa: BLE001 - somebody else's code
        return _broken(name, f"the plug-in {value} cannot be loaded: {error!r}")
    if strange := sorted(set(check.reads) - {*Facts.__dataclass_fields__, "facts"}):
        return _broken(name, f"the plug-in {value} asks for facts that are none: {strange}")
    return replace(check, run=_guarded(check.run))


def _guarded(run: Callable[..., Iterator[Finding]]) -> Callable[..., Iterator[Finding]]:
    """Return *run* with steps whose effect changes nothing when it fails."""
    from torchdoctor.model import Finding  # noqa: PLC0415 - nobody has plug-ins, as a rule

    def guarded(**given: object) -> Iterator[Finding]:
        for finding in cast("Iterator[object]", run(**given)):
            if not isinstance(finding, Finding):
                raise TypeError(f"{finding!r} is no Finding")
            yield replace(finding, steps=tuple(map(_harmless, finding.steps)))

    return guarded


def _harmless(step: Step) -> Step:
    def effect(facts: Facts) -> Facts:
        try:
            after: object = step.effect(facts)
        except Exception:  # noqa: BLE001 - a step that cannot be foreseen proves nothing
            return facts
        return after if isinstance(after, Facts) else facts

    return replace(step, effect=effect)


def _broken(name: str, why: str) -> Check:
    from torchdoctor import registry  # noqa: PLC0415 - it asks for us

    def run() -> Iterator[Finding]:
        _fail(why)

    return registry.Check(
        name=f"plug-in-{name}",
        family=FAMILY,
        explains=f"A plug-in that does not work.\n\n{why}",
        reads=(),
        bears_unknown=frozenset(),
        after=(),
        names=(f"plug-in-{name}",),
        run=run,
    )


def _fail(why: str) -> NoReturn:
    raise ImportError(why)
