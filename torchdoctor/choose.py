"""Which build of torch, torchvision and torchaudio fits this machine.

A build fits when it was published for the system and the Python, its C library is not newer than
the system's, the driver runs its CUDA (minor-version compatibility counted in), it has machine
code for every GPU, and companions and neighbours exist for it. Among those that fit, the release
that is there now is kept where that is wanted, else the newest is taken; within a release the
build that is there now, then the highest CUDA that the driver supports in full, then the lowest
that it runs at all. Facts that are unknown constrain nothing.

Where none fits, what excludes them all is told, and the smallest thing to give up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TypeVar

from packaging.utils import canonicalize_name

from torchdoctor import constraints
from torchdoctor.constraints import Constraint, Wish
from torchdoctor.facts import (
    NOT_COLLECTED,
    Build,
    Driver,
    Expectation,
    Facts,
    Interpreter,
    Platform,
    Unknown,
)
from torchdoctor.installers import Beside, Package
from torchdoctor.tables import builds, drivers, load, neighbours, platforms, releases
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_T = TypeVar("_T")
_Wished = TypeVar("_Wished", bound=Hashable)
Accelerator = builds.Kind
Candidate = tuple[str, builds.Build]
_Expected = tuple[Literal["cpu", "cuda", "rocm", "xpu", "mps"] | None, str | None, int | None]
Kind = Literal["neighbour", "torch", "gpu", "cpu", "python", "environment", "driver", "system"]
"""What can be given up."""

PYTHONS = ("3.12", "3.13", "3.11", "3.10")
"""For a new environment, the one with most wheels first."""
_ASKED = (
    *("platform", "interpreter", "driver", "gpus", "toolkits"),
    *("torch", "torchvision", "torchaudio"),
)
"""The facts that say which build fits, where nothing beside torch holds it back; what is expected
of the machine is another.
"""
_asked_of = attrgetter(*_ASKED)
KEPT = 512
"""So many answers are remembered."""
FEW = 3
"""So many builds are named one by one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A set that fits: what to install, and the index to take it from (None: the default)."""

    release: str
    """Empty where only the index is known that has a fitting one (Jetson)."""
    tag: str
    packages: tuple[Package, ...]
    index: str | None
    beside: tuple[Beside, ...] = ()
    """What is installed after torch: neighbours, and companions that are on another index."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables that it needs here."""
    python: str | None = None
    """The Python of a new environment that it is for; None: the interpreter's own."""

    @property
    def versions(self) -> dict[str, str]:
        """Return name -> version of what is installed, where it is known."""
        known = {package.name: package.version for package in self.packages}
        return known | {b.name: b.version for b in self.beside if b.version}


@dataclass(frozen=True, slots=True)
class Reason:
    """A constraint that excludes builds, and the releases of torch that it leaves."""

    constraint: Constraint
    leaves: str
    """For people: "torch 2.5.0 and newer", "no torch"; empty where it only says what is wanted."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to give up."""

    kind: Kind
    says: str
    """For people: "Python 3.12 instead of 3.7"."""
    value: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """That no build fits: why, and the smallest relaxation with which one would."""

    reasons: tuple[Reason, ...]
    relaxation: tuple[Change, ...] = ()
    """Empty: nothing that could be given up here helps."""
    choice: Choice | None = None
    """What fits once it is given up."""
    facts: Facts = field(default_factory=Facts, repr=False)
    """The machine as it would then be."""
    wish: Wish = field(default_factory=Wish, repr=False)
    """What would then be wished for."""


def choose(
    facts: Facts,
    *,
    accelerator: Accelerator | None = None,
    release: str | None = None,
    python: str | None = None,
) -> Choice | None:
    """Return the best set that fits, or None when the tables know none.

    *accelerator* is what it must run on; None takes what the machine has. *release* is a torch
    release that must be kept. *python* stands in for the interpreter's ("3.12"). The release that
    is installed is kept where it can be. What is installed beside torch does not hold it back.
    """
    if release is not None and releases.torch_release(release) is None:
        return None
    public = release.partition("+")[0] if release else ""
    wish = Wish(public, accelerator, python, beside=False, keep=True)
    return _chosen(facts, wish)


def remembered(made: Callable[[Facts, _Wished], _T]) -> Callable[[Facts, _Wished], _T]:
    """Return *made*, which looks at no facts but those of ``_ASKED``, such that it asks once.

    Most steps leave all of them as they are, and a plan asks again after each.
    """

    @functools.lru_cache(KEPT)
    def of_values(wished: _Wished, expected: _Expected, *asked: object) -> _T:
        known = dict(zip(_ASKED, asked, strict=True))
        facts = Facts(**known, expectation=Expectation(*expected))  # type: ignore[arg-type] # fields of Facts
        return made(facts, wished)

    same: dict[object, tuple[object, _T]] = {}

    def of_facts(facts: Facts, wished: _Wished) -> _T:
        said, asked = facts.expectation, _asked_of(facts)
        key = wished, id(said), *map(id, asked)
        if key not in same:  # to take the hash of them all takes longer than most of the rest
            if len(same) > KEPT:
                same.clear()
            expected = said.accelerator, said.cuda_at_least, said.gpus_at_least
            same[key] = (said, asked), of_values(wished, expected, *asked)  # with them: ids stay
        return same[key][1]

    return of_facts


@remembered
def _chosen(facts: Facts, wish: Wish) -> Choice | None:
    return _best(facts, wish, rather=("companion",))


def decide(facts: Facts, wish: Wish) -> Choice | Refusal:
    """Return the newest set that does justice to *facts* and *wish*, or why there is none."""
    return _best(facts, wish) or of_jetpack(facts, wish) or _refusal(facts, wish)


def with_python(facts: Facts, release: str | None = None) -> tuple[str, Choice] | None:
    """Return the newest Python for which a set fits here, with that set; None if there is none.

    *release* is a torch release that must be kept.
    """
    return _with_python(facts, release)


@remembered
def _with_python(facts: Facts, release: str | None) -> tuple[str, Choice] | None:
    unknown = isinstance(facts.platform, Unknown)
    key = constraints.key_of(facts) or (constraints.ANY_PLATFORM if unknown else "")
    if choose(facts.but(interpreter=NOT_COLLECTED), release=release) is None:
        return None  # something else than the Python stands in the way
    for python in _pythons(key):
        if choice := choose(facts, python=python, release=release):
            return python, choice
    return None


@functools.cache
def _pythons(key: str) -> tuple[str, ...]:
    """Return the Pythons that any release was published for on a platform, the newest first."""
    known = {p for r in releases.torch_releases() for p in r.pythons.get(key, ())}
    plain = [p for p in known if p.replace(".", "").isdigit()]
    return tuple(sorted(plain, key=constraints.numbers, reverse=True))


def at(facts: Facts, release: str, tag: str) -> Choice:
    """Return the set of *release* in the build *tag*, with the companions that are installed."""
    return _set(facts, Wish(beside=False), release, tag)


def python_fits(facts: Facts, release: str) -> bool:
    """Tell whether *release* was published for the interpreter; True when that is unknown."""
    if isinstance(facts.interpreter, Unknown):
        return True
    return constraints.has_python(release, constraints.key_of(facts), facts.interpreter.tag)


def fitting(facts: Facts, wish: Wish) -> Iterator[tuple[str, str]]:
    """Yield the release and the tag of every build that fits, the best first."""
    asked = constraints.of(facts, wish)
    yield from ((release, build.tag) for release, build in _candidates(facts, wish, asked))


def alternatives(facts: Facts, wish: Wish, choice: Choice) -> tuple[str, ...]:
    """Return the tags of the other builds of the chosen release that fit, too, the best first."""
    asked = constraints.of(facts, wish)
    same = [b for release, b in _candidates(facts, wish) if release == choice.release]
    fitting = [b.tag for b in same if _admitted(asked, choice.release, b)]
    return tuple(tag for tag in fitting if tag != choice.tag)


# ---- the best that fits ------------------------------------------------------------------------


def _best(facts: Facts, wish: Wish, rather: tuple[str, ...] = ()) -> Choice | None:
    """Return the best set that is admitted; constraints called *rather* give way if need be."""
    every = constraints.of(facts, wish)
    asked = [c for c in every if c.name not in rather]
    liked = [c for c in every if c.name in rather]
    second: Candidate | None = None
    for release, build in _candidates(facts, wish, asked):
        if _admitted(liked, release, build):
            return _set(facts, wish, release, build.tag)
        second = second or (release, build)
    return _set(facts, wish, second[0], second[1].tag) if second else None


def _admitted(asked: Iterable[Constraint], release: str, build: builds.Build) -> bool:
    return all(constraint.admits(release, build) for constraint in asked)


def _candidates(facts: Facts, wish: Wish, asked: Sequence[Constraint] = ()) -> Iterator[Candidate]:
    """Yield every build for the platform that *asked* admits, the best first."""
    key = constraints.key_of(facts) or constraints.ANY_PLATFORM
    now = facts.torch if isinstance(facts.torch, Build) and wish.keep else None
    newest = _cuda_of_driver(facts)

    def best_first(
        release: str, build: builds.Build
    ) -> tuple[bool, bool, bool, tuple[int, ...], str]:
        numbers = constraints.numbers(build.cuda or build.tag.removeprefix("rocm"))
        in_full = newest is None or build.kind != "cuda" or numbers <= newest
        order = tuple(-number for number in numbers) if in_full else numbers
        there = now is not None and build.tag == now.tag
        bent = build.kind == "rocm" and constraints.override(facts, release, build.tag) is not None
        return (not there, bent, not in_full, order, build.tag)

    one = releases.torch_release(wish.torch.partition("+")[0])
    held = one is not None and any(constraint.name == "torch" for constraint in asked)
    known = [one.version] if one and held else [r.version for r in releases.torch_releases()]
    for release in sorted(known, key=lambda version: now is None or version != now.public):
        listed = [b for b in builds.installable(release, key) if _admitted(asked, release, b)]
        yield from (
            (release, b) for b in sorted(listed, key=functools.partial(best_first, release))
        )


def _cuda_of_driver(facts: Facts) -> tuple[int, ...] | None:
    """Return the newest CUDA that the driver supports in full; None when that is unknown."""
    if not isinstance(facts.driver, Driver):
        return None
    cuda, release = facts.driver.cuda, facts.driver.release
    if not cuda and release and constraints.numbers(release):
        cuda = drivers.cuda_of_driver(release, constraints.driver_key(facts))
    return constraints.numbers(cuda) if cuda else None


def _set(facts: Facts, wish: Wish, release: str, tag: str) -> Choice:
    """Return everything that is to be installed for the build *tag* of *release*."""
    key = constraints.key_of(facts) or constraints.ANY_PLATFORM
    labelled = any(b.tag == tag for b in builds.builds(release, key)) and "macos" not in key
    packages = [_package("torch", release, tag if labelled else None)]
    beside: list[Beside] = []
    for name in constraints.companions(facts, wish):
        found = constraints.companion(name, release, tag, key)
        if found is None:
            continue
        version, label = found
        if labelled and label is None:  # on the default index only
            beside.append(Beside(name, f"==={version}", version, None, alone=True))
        else:
            packages.append(_package(name, version, label if labelled else None))
    build = next((b for b in builds.installable(release, key) if b.tag == tag), None)
    for asked, _ in constraints.neighbour_wishes(facts, wish):
        found_version = constraints.neighbour(facts, asked, release, build) if build else None
        if found_version is not None:
            beside.append(_beside(asked, found_version))
    bent = constraints.override(facts, release, tag) if tag.startswith("rocm") else None
    return Choice(
        release,
        tag,
        tuple(packages),
        f"{builds.INDEX_ROOT}{tag}" if labelled else None,
        tuple(beside),
        (("HSA_OVERRIDE_GFX_VERSION", bent.value),) if bent else (),
        wish.python,
    )


def _package(name: str, version: str, label: str | None) -> Package:
    return Package(name, f"{version}+{label}") if label else Package(name, version, exact=True)


def _beside(asked: Requirement, found: constraints.Version) -> Beside:
    specifier = f"=={found.version}" if found.version else str(asked.specifier)
    return Beside(
        canonicalize_name(asked.name),
        specifier,
        "" if "*" in found.version else found.version,
        found.index,
        alone=found.alone,
        compiled=neighbours.source_only(asked.name),
        whole_index=bool(found.index and found.index.startswith(builds.INDEX_ROOT)),
    )


def of_jetpack(facts: Facts, wish: Wish) -> Choice | None:
    """Return NVIDIA's own wheels for a Jetson that the ordinary ones do not fit."""
    row = constraints.jetpack(facts)
    kind = wish.accelerator or constraints.wanted(facts)
    python = wish.python or (
        facts.interpreter.tag if isinstance(facts.interpreter, Interpreter) else None
    )
    if row is None or kind != "cuda" or wish.torch or python not in (None, row.python):
        return None
    if not platforms.is_index(row.index):
        return None
    names = ("torch", *constraints.companions(facts, wish))
    tag = "cu" + row.cuda.replace(".", "")
    packages = tuple(Package(name, "") for name in names)
    return Choice("", tag, packages, row.index, python=wish.python)


# ---- why none does, and what would help --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Move:
    """A thing to give up: its cost on the scale of steps, what it drops and puts instead."""

    kind: Kind
    cost: int
    drops: frozenset[int]
    instead: Constraint | None = None
    about: str = ""


def _refusal(facts: Facts, wish: Wish) -> Refusal:
    asked = constraints.of(facts, wish)
    moves = tuple(_moves(facts, wish, asked))
    every = (*asked, *(move.instead for move in moves if move.instead))
    places = {id(constraint): 1 << i for i, constraint in enumerate(every)}
    candidates = list(_candidates(facts, wish))
    failing = [
        sum(places[id(c)] for c in every if not c.admits(release, build))
        for release, build in candidates
    ]
    best: dict[int, Candidate] = {}
    for candidate, lacks in zip(candidates, failing, strict=True):
        best.setdefault(lacks, candidate)  # they come the best first
    required = (1 << len(asked)) - 1
    reasons = tuple(
        Reason(constraint, _leaves(constraint, asked, candidates))
        for constraint in _conflicting(asked, failing)
    )
    for some in sorted(_subsets(moves), key=lambda s: (sum(m.cost for m in s), len(s))):
        dropped = sum(1 << i for i in {i for move in some for i in move.drops})
        put = sum(places[id(move.instead)] for move in some if move.instead)
        wanted = required & ~dropped | put
        which = next((c for lacks, c in best.items() if not lacks & wanted), None)
        if which is None:
            continue
        found = _given_up(facts, wish, some, which)
        if choice := _best(*found):
            changes = tuple(_change(move, facts, wish, found, choice) for move in some)
            return Refusal(reasons, changes, choice, *found)
    return Refusal(reasons)


def _subsets(moves: Sequence[_Move]) -> Iterator[tuple[_Move, ...]]:
    for size in range(1, len(moves) + 1):
        for some in combinations(moves, size):
            about = [move.about for move in some if move.about]
            if len(set(about)) == len(about):  # one neighbour is not both changed and left out
                yield some


def _conflicting(asked: Sequence[Constraint], failing: Sequence[int]) -> Iterator[Constraint]:
    """Yield the constraints that together leave nothing, each of them needed for that.

    Where several such sets exist that share none, all of them are told.
    """
    left = (1 << len(asked)) - 1
    while all(f & left for f in failing):
        least = left
        for i in reversed(range(len(asked))):
            without = least & ~(1 << i)
            if least >> i & 1 and all(f & without for f in failing):
                least = without
        if not least:  # no build exists at all
            return
        yield from (c for i, c in enumerate(asked) if least >> i & 1)
        left &= ~least


def _leaves(
    constraint: Constraint, asked: Sequence[Constraint], candidates: Sequence[Candidate]
) -> str:
    """Say which releases *constraint* leaves, among builds for the same accelerator."""
    kinds = [c for c in asked if c.name == "accelerator"]
    if constraint in kinds:
        return "" if any(constraint.admits(*c) for c in candidates) else "no torch"
    among = [c for c in candidates if _admitted(kinds, *c)] or list(candidates)
    left = [c for c in among if constraint.admits(*c)]
    if left:
        return _range(left, among)
    some = any(constraint.admits(*c) for c in candidates)
    if constraint.name == "torch" and not some:
        end = f"the tables of {load('releases')['as_of']} end with {releases.newest('torch')}"
        return f"nothing: {end}"
    return f"no {kinds[0].value} build" if some and kinds else "no torch"


def _range(left: Sequence[Candidate], among: Sequence[Candidate]) -> str:
    every = sorted({release for release, _ in among}, key=constraints.numbers)
    found = sorted({release for release, _ in left}, key=constraints.numbers)
    tags = sorted({build.tag for _, build in left} - {"cpu"})
    few = f" ({', '.join(tags)})" if 0 < len(tags) <= FEW else ""
    if found[0] == found[-1]:
        return f"torch {found[0]}{few}"
    if found[0] == every[0]:
        return f"torch up to {found[-1]}{few}"
    if found[-1] == every[-1]:
        return f"torch {found[0]} and newer{few}"
    return f"torch {found[0]} to {found[-1]}{few}"


def _moves(facts: Facts, wish: Wish, asked: Sequence[Constraint]) -> Iterator[_Move]:
    """Yield what could be given up, with what it costs on the scale of steps."""

    def named(*names: str) -> frozenset[int]:
        return frozenset(i for i, c in enumerate(asked) if c.name in names)

    here = facts.platform if isinstance(facts.platform, Platform) else None
    kind = wish.accelerator or constraints.wanted(facts)
    yield from _neighbour_moves(facts, asked)
    moves = [_Move("torch", 8, named("torch"))]
    if len(cards := [i for i, c in enumerate(asked) if c.name == "gpu"]) > 1:
        cards.sort(key=lambda i: (len(asked[i].value), asked[i].value))  # the oldest first
        moves += [_Move("gpu", 10, frozenset({i}), about=asked[i].subject) for i in cards]
    if kind != "cpu":
        cpu = constraints.of(facts, Wish(accelerator="cpu", beside=False))
        drops = named("accelerator", "cuda", "driver", "gpu")
        moves.append(_Move("cpu", 12, drops, _first(cpu, "accelerator")))
    moves.append(_Move("python", 20, named("python")))
    moves.append(_Move("environment", 20, named("image")))
    if not (here and here.jetson):  # its driver comes with JetPack
        moves.append(_Move("driver", 60, named("driver"), _driver_that_knows_the_gpus(facts)))
    moves.append(_Move("system", 80, named("libc", "macos")))
    if here and here.libc == "musl" and constraints.key_of(facts):
        moves.append(_Move("system", 80, named("platform")))
    yield from (move for move in moves if move.drops)


def _neighbour_moves(facts: Facts, asked: Sequence[Constraint]) -> Iterator[_Move]:
    for i, constraint in enumerate(asked):
        if constraint.name == "companion":
            yield _Move("neighbour", 5, frozenset({i}), about=constraint.subject)
        if constraint.name == "neighbour":
            name = constraints.requirement(constraint.subject).name
            if name != constraint.subject:
                any_version = constraints.of(facts, Wish(neighbours=(name,), beside=False))
                other = _first(any_version, "neighbour")
                yield _Move("neighbour", 4, frozenset({i}), other, about=name)
            yield _Move("neighbour", 5, frozenset({i}), about=name)


def _first(asked: Iterable[Constraint], name: str) -> Constraint:
    return next(c for c in asked if c.name == name)


def _driver_that_knows_the_gpus(facts: Facts) -> Constraint:
    """Return the constraint that a driver which still supports every GPU here runs the build."""
    known = constraints.with_capabilities(facts).gpus
    cards = () if isinstance(known, Unknown) else known
    lasts = [
        last for g in cards if g.capability and (last := drivers.last_driver_branch(g.capability))
    ]
    key = constraints.driver_key(facts)

    def admits(_release: str, build: builds.Build) -> bool:
        needed = drivers.minimum_driver(build.cuda, key) if build.cuda else "0"
        return needed is not None and all(constraints.numbers(needed)[0] <= n for n in lasts)

    return Constraint("driver", "a newer NVIDIA driver", "", "NVIDIA", admits)


def _given_up(
    facts: Facts, wish: Wish, some: Iterable[_Move], which: Candidate
) -> tuple[Facts, Wish]:
    """Return the machine and the wish with *some* given up, so that *which* fits."""
    key = constraints.key_of(facts) or constraints.ANY_PLATFORM
    release, build = which
    for move in some:
        match move.kind:
            case "neighbour":
                facts, wish = _without(facts, wish, move)
            case "torch":
                wish = replace(wish, torch="")
            case "gpu":
                facts = constraints.without_gpu(facts, wish, move.about)
            case "cpu":
                wish = replace(wish, accelerator="cpu")
            case "python":
                wish = replace(wish, python=_python_for(release, key))
            case "environment":
                nothing = {"torch": None, "torchvision": None, "torchaudio": None}
                facts = facts.but(**nothing, distributions=())
            case "driver":
                needed = drivers.minimum_driver(build.cuda or "", constraints.driver_key(facts))
                facts = facts.but(driver=Driver(needed, source="a newer driver"))
            case "system":
                facts = _newer_system(facts, release, build, key)
    return facts, wish


def _without(facts: Facts, wish: Wish, move: _Move) -> tuple[Facts, Wish]:
    name = canonicalize_name(move.about)

    def kept(text: str) -> bool:
        return canonicalize_name(constraints.requirement(text).name) != name

    asked = tuple(text for text in wish.neighbours if kept(text))
    if move.instead:
        return facts, replace(wish, neighbours=(*asked, move.about))
    if name in constraints.COMPANIONS:
        left = tuple(n for n in wish.companions if n != name)
        gone: dict[str, None] = {name: None}
        return facts.but(**gone), replace(wish, companions=left)
    known = facts.distributions
    if not isinstance(known, Unknown):
        facts = facts.but(distributions=tuple(d for d in known if d.name != name))
    return facts, replace(wish, neighbours=asked)


def _python_for(release: str, key: str) -> str | None:
    """Return the Python of a new environment for *release*: the usual ones first."""
    known = releases.torch_release(release)
    listed = known.pythons.get(key, ()) if known else ()
    plain = [p.rstrip("+") for p in listed if p.rstrip("+").replace(".", "").isdigit()]
    usual = [p for p in PYTHONS if constraints.has_python(release, key, p)]
    return next(iter([*usual, *sorted(plain, key=constraints.numbers, reverse=True)]), None)


def _newer_system(facts: Facts, release: str, build: builds.Build, key: str) -> Facts:
    here = facts.platform
    assert isinstance(here, Platform)
    if here.system == "darwin":
        mps = facts.expectation.accelerator == "mps"
        return replace(
            facts,
            platform=replace(here, version=constraints.needed_macos(release, key, mps=mps)),
        )
    libc = constraints.needed_libc(release, build.tag, key)
    return facts.but(platform=replace(here, libc="glibc", libc_version=libc))


def _change(
    move: _Move, facts: Facts, wish: Wish, found: tuple[Facts, Wish], choice: Choice
) -> Change:
    """Say what is given up, with the values on both sides."""
    then, asked = found
    match move.kind:
        case "neighbour" if move.instead:
            version = next((b.specifier for b in choice.beside if b.name == move.about), "")
            said = f"{move.about}{version} instead of the one asked for"
            value = f"{move.about}{version}"
        case "neighbour":
            said, value = f"without {move.about}", move.about
        case "torch":
            said = f"torch {choice.release} instead of {wish.torch}"
            value = choice.release
        case "gpu":
            said, value = f"without {move.about}, hidden by CUDA_VISIBLE_DEVICES", move.about
        case "cpu":
            said, value = "the CPU instead of the GPU", "cpu"
        case "python":
            value = asked.python or ""
            have = _first(constraints.of(facts, wish), "python").subject
            said = f"Python {value} instead of {have.removeprefix('Python ')}"
        case "environment":
            said, value = "an environment of its own, which leaves the image's torch alone", "new"
        case "driver":
            value = (then.driver.release if isinstance(then.driver, Driver) else None) or ""
            have = (facts.driver.release if isinstance(facts.driver, Driver) else None) or ""
            said = f"the NVIDIA driver {value} or newer instead of {have}"
        case "system":
            said, value = _system_change(facts, then)
    return Change(move.kind, said, value)


def _system_change(facts: Facts, then: Facts) -> tuple[str, str]:
    old, new = facts.platform, then.platform
    assert isinstance(old, Platform)
    assert isinstance(new, Platform)
    if new.system == "darwin":
        return f"macOS {new.version} or newer instead of {old.version}", new.version or ""
    have = f"{old.libc} {old.libc_version or ''}".strip()
    said = f"a system with glibc {new.libc_version} or newer instead of {have}"
    return said, new.libc_version or ""
