"""Machines with several faults at once, made from those that the tests of the checks know.

Every set of facts on which a check's own test finds something is a fault; the reports of the
corpus are machines. A world is a machine with some faults put on top, by a number: the same
number is the same world.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import FunctionType

import pytest

from tests.checks import make
from tests.corpus_score import cases
from torchdoctor import effects, inputs, plan
from torchdoctor.facts import Build, Conda, Distribution, Expectation, Facts, Unknown
from torchdoctor.model import Outcome, Plan
from torchdoctor.reading import machine
from torchdoctor.registry import Check, all_checks
from torchdoctor.run import run

Known = dict[str, object]

CHECKS = all_checks()
HERE = Path(__file__).parent / "checks"
MOST_FAULTS = 4
JOINED = frozenset(("symptoms", "leftovers", "toolkits"))
"""Facts of which one machine may have several."""
MERGED = frozenset(("variables", "records", "companion_trials", "trial_after", "modules"))


@functools.cache
def faults() -> tuple[tuple[str, Known], ...]:
    """Return a check's name and facts on which it finds something, for all that tests know."""
    found: dict[str, tuple[str, Known]] = {}
    for file in sorted(HERE.glob("test_*.py")):
        module = importlib.import_module(f"tests.checks.{file.stem}")
        name = file.stem.removeprefix("test_").replace("_", "-")
        if name not in CHECKS:
            continue
        for known in _shown(vars(module).values(), CHECKS[name]):
            found.setdefault(repr(sorted(known.items())), (name, known))
    return tuple(found.values())


@functools.cache
def machines() -> tuple[tuple[str, Facts], ...]:
    """Return machines to put faults on: healthy ones, reports, one of which nothing is known."""
    healthy = Facts(
        platform=make.linux(),
        interpreter=make.interpreter(),
        variables={},
        distributions=(make.dist("torch", "2.13.0+cu130"), make.dist("numpy", "2.1.0")),
        torch=make.build(),
        torchvision=None,
        torchaudio=None,
        records={},
        leftovers=(),
        conda=None,
        container=None,
        driver=make.driver(),
        gpus=(make.a100(),),
        device_nodes=make.NVIDIA_NODES,
        trial=make.imported(),
        runtime=make.runtime(make.device(make.a100())),
        symptoms=(),
    )
    by_uv = replace(
        healthy, interpreter=make.interpreter(installer="uv", has_pip=False), gpus=(), driver=None
    )
    by_conda = replace(
        healthy, interpreter=make.interpreter(kind="conda", installer="conda"), conda=Conda(())
    )
    windows = Facts(
        platform=make.windows(),
        interpreter=make.interpreter(machine="win-amd64", executable=r"C:\env\python.exe"),
        variables={},
        torch=make.build("2.9.1+cpu"),
        distributions=(make.dist("torch", "2.9.1+cpu"),),
        trial=make.imported(),
        windows=make.system(),
        symptoms=(),
    )
    mine = {"nothing": Facts(), "linux": healthy, "uv": by_uv, "conda": by_conda, "win": windows}
    read = {
        case.id: machine.read(inputs.of_text(case.file.read_text("utf-8")), Expectation())
        for case in cases()
    }
    return tuple({**mine, **read}.items())


def world(number: int) -> tuple[str, Facts]:
    """Return what the world *number* is made of, and its facts."""
    chance = random.Random(number)  # noqa: S311 - no secret
    name, facts = chance.choice(machines())
    names = [name]
    for _ in range(chance.randint(1, MOST_FAULTS)):
        what, known = chance.choice(faults())
        facts = _put(facts, known)
        names.append(what)
    return f"{number}: {' + '.join(names)}", _agreeing(facts)


def _agreeing(facts: Facts) -> Facts:
    """Return *facts* in which a build is owned by the distribution that is listed, as one reads."""
    listed = () if isinstance(facts.distributions, Unknown) else facts.distributions
    changes: dict[str, object] = {}
    for name in effects.FAMILY:
        build = getattr(facts, name)
        owner = build.distribution if isinstance(build, Build) else None
        same = [d for d in listed if owner and (d.name, d.version) == (name, owner.version)]
        if same and same[0] is not owner:
            changes[name] = replace(build, distribution=same[0])
    return replace(facts, **changes)  # type: ignore[arg-type] # fields of Facts


def _put(facts: Facts, known: Known) -> Facts:
    now = {field.name: getattr(facts, field.name) for field in fields(Facts)}
    return replace(facts, **{n: _both(n, now[n], value) for n, value in known.items()})  # type: ignore[arg-type]


def _both(name: str, old: object, new: object) -> object:
    """Return *new*, beside *old* where a machine may have both."""
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        return new
    if name in JOINED and isinstance(old, tuple) and isinstance(new, tuple):
        return tuple(dict.fromkeys((*old, *new))) if name != "symptoms" else (*old, *new)
    if name in MERGED and isinstance(old, Mapping) and isinstance(new, Mapping):
        return {**old, **new}
    if name == "distributions" and isinstance(old, tuple) and isinstance(new, tuple):
        names = {d.name for d in new if isinstance(d, Distribution)}
        return (*(d for d in old if isinstance(d, Distribution) and d.name not in names), *new)
    return new


def _shown(members: Iterable[object], check: Check) -> Iterator[Known]:
    """Yield the facts that the tests among *members* put before *check*, where it finds a fault."""
    seen: list[Known] = []

    def judge(**known: object) -> Outcome:
        (outcome,) = run({check.name: check}, Facts(**known))  # type: ignore[arg-type]
        seen.append(known)
        return outcome

    def cure(**known: object) -> Plan:
        facts = Facts(**known)  # type: ignore[arg-type]
        seen.append(known)
        return plan.make({check.name: check}, facts, run({check.name: check}, facts))

    for member in members:
        if isinstance(member, FunctionType) and member.__name__.startswith("test_"):
            for given in _calls(member, {"judge": judge, "cure": cure}):
                _call(member, given)
    for known in seen:
        (outcome,) = run({check.name: check}, Facts(**known))  # type: ignore[arg-type]
        if any(f.severity != "note" for f in outcome.findings):
            yield known


def _call(test: Callable[..., None], given: Known) -> None:
    """Run *test* for what it puts before its check; whether it passes is its own business."""
    with contextlib.suppress(Exception, pytest.skip.Exception):
        test(**given)


def _calls(test: Callable[..., None], fixtures: Known) -> Iterator[Known]:
    """Yield the arguments of *test*, for each of its parameters; none where it asks for more."""
    rows: list[Known] = [{}]
    for mark in getattr(test, "pytestmark", ()):
        if mark.name != "parametrize":
            return
        names, values = mark.args[:2]
        words = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
        rows = [row | _row(words, value) for row in rows for value in values]
    for row in rows:
        wanted = set(inspect.signature(test).parameters) - set(row)
        if wanted <= set(fixtures):
            yield row | {name: fixtures[name] for name in wanted}


def _row(words: list[str], value: object) -> Known:
    if type(value).__name__ == "ParameterSet":
        value = value.values  # type: ignore[attr-defined] # pytest.param(...)
    elif len(words) == 1:
        value = (value,)
    assert isinstance(value, tuple | list)
    return dict(zip(words, value, strict=True))
