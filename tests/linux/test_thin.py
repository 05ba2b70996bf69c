"""What a thin record answers is what the whole one answers, whatever variables are set."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.linux import arrangements, lab
from tests.linux.lab import Arrangement
from tests.linux.test_answers import SHADOWED, record
from tests.linux.test_startup import MACHINERIES
from tests.linux.torch_start import Machinery
from torchdoctor.linux import answers, disk, loader, thin
from torchdoctor.linux.elf import VersionNeed
from torchdoctor.linux.loader import File, Load, Machine
from torchdoctor.linux.objects import SharedObject, small, symbol_hash, to_json

NAMED = [
    pytest.param(arrangement, id=f"{rule}: {name}")
    for rule, some in arrangements.ALL.items()
    for name, arrangement in some.items()
]
needs_gcc = pytest.mark.skipif(lab.GCC is None, reason="no gcc to compile with")


def thinned(machine: Machine, *others: Machine, loaded: tuple[str, ...] = ()) -> Machine:
    """Return *machine* as it comes out of a record; *others* are searched in, too."""
    starts = [loader.start(each).process for each in (machine, *others)]
    files = {path: machine.files[path] for path in machine.files}
    facts = thin.thin(replace(machine, files=files), loaded, starts)
    asked = frozenset(symbol_hash(name) for each in facts.values() for name in each.symbols)
    kept = {same: small(each, named=asked, asked=asked) for same, each in facts.items()}
    return replace(machine, files={p: File(kept.get(f.same), f.same) for p, f in files.items()})


def told(load: Load) -> object:
    """Return all that is said of *load*, without the facts of the files."""
    rows = [(o.path, o.same, o.how, o.asked, o.parent) for o in load.tried]
    return (load.problem, load.also, load.assumed, load.process.names, rows)


# ---- small libraries on the disk ----------------------------------------------------------------


@needs_gcc
@pytest.mark.parametrize("arrangement", NAMED)
def test_each_arrangement_ends_as_with_the_whole_record(
    arrangement: Arrangement, tmp_path: Path
) -> None:
    if arrangement.cached and not lab.LDCONFIG:
        pytest.skip("no ldconfig to make a cache with")
    lab.build(arrangement, tmp_path)
    if arrangement.cached:
        lab.make_cache(arrangement, tmp_path)
    whole = lab.machine(arrangement, tmp_path)
    load, said = lab.predicted(arrangement, tmp_path, whole)  # asks for the files, too
    again, same = lab.predicted(arrangement, tmp_path, thinned(whole))
    assert (told(again), same) == (told(load), said)


@needs_gcc
@pytest.mark.parametrize("machinery", [*MACHINERIES.values(), SHADOWED], ids=[*MACHINERIES, "cut"])
def test_the_start_of_torch_ends_as_with_the_whole_record(
    machinery: Machinery, tmp_path: Path
) -> None:
    taken = record(machinery, tmp_path)
    files = disk.OnDisk(lambda path: str(tmp_path / path))
    numbers = {number: path for path, number in taken["files"].items()}  # type: ignore[attr-defined]
    facts = {number: files[path].facts for number, path in numbers.items()}
    entire = {number: to_json(each) for number, each in facts.items() if each}
    assert len(json.dumps(taken)) < len(json.dumps(taken | {"objects": entire})) / 4
    assert answers.of(taken) == answers.of(taken | {"objects": entire})


# ---- random machines ----------------------------------------------------------------------------

FOLDERS = ("/a", "/b", "/c")
SONAMES = tuple(f"lib{n}.so" for n in range(6))
SYMBOLS = tuple(f"symbol{n}" for n in range(14))
VERSIONS = ("V_1", "V_2", "GLIBC_2.30")
PROGRAM = "/bin/program"


def some(rng: random.Random, values: tuple[str, ...], most: int) -> tuple[str, ...]:
    return tuple(rng.sample(values, rng.randint(0, most)))


def library(rng: random.Random, soname: str, odd: float) -> SharedObject:
    """Return facts of a library: what it has and needs is drawn; *odd* is how often it is unfit."""
    at = SONAMES.index(soname)
    needed = [n for n in SONAMES[at + 1 :] if rng.random() < 0.5]
    if rng.random() < odd * 3:
        needed.append(rng.choice((*SONAMES, "libgone.so", f"/a/{soname}", "$ORIGIN/lib0.so")))
    own = SYMBOLS[2 * at : 2 * at + 4]
    of_needed = tuple(s for n in needed if n in SONAMES for s in _own(n))
    wants = [VersionNeed(n, some(rng, VERSIONS, 1)) for n in needed if rng.random() < 0.3]
    path = rng.choice((None, None, None, "/b", "$ORIGIN", "/none:/c"))
    paths = {rng.choice(("rpath", "runpath")): path}
    return SharedObject(
        soname=rng.choice((soname,) * 9 + (rng.choice(SONAMES),)),
        broken="cut off" if rng.random() < odd else None,
        machine="riscv" if rng.random() < odd else "x86_64",
        needed=tuple(needed),
        wants=tuple(wants),
        offers=frozenset(VERSIONS if rng.random() < 0.8 else some(rng, VERSIONS, 3)),
        symbols=tuple(
            dict.fromkeys((*of_needed[::2], *(some(rng, SYMBOLS, 1) if rng.random() < 0.2 else ())))
        ),
        defined=frozenset(map(symbol_hash, own if rng.random() < 0.8 else own[1:])),
        damage=("odd",) if rng.random() < 0.01 else (),
        **paths,  # type: ignore[arg-type]
    )


def _own(soname: str) -> tuple[str, ...]:
    return SYMBOLS[2 * SONAMES.index(soname) : 2 * SONAMES.index(soname) + 4]


def drawn(rng: random.Random) -> list[Machine]:
    """Return a machine, and the same with other variables."""
    odd = rng.choice((0.01, 0.1))
    own = replace(library(rng, SONAMES[-2], odd), soname=None)
    if rng.random() < 0.3:
        own = replace(own, interpreter=f"{rng.choice(FOLDERS)}/{rng.choice(SONAMES)}")
    files = {PROGRAM: File(own, "program")}
    for soname in SONAMES:
        for folder in rng.sample(FOLDERS, rng.choice((1, 1, 1, 2, 3))):
            path = f"{folder}/{soname}"
            facts = library(rng, soname, odd) if rng.random() > odd else None
            files[path] = File(facts, path)
    if rng.random() < 0.2:
        link, target = rng.choice(list(files)[1:]), rng.choice(list(files)[1:])
        files[link] = files[target]
    cache = {s: f"{rng.choice(FOLDERS)}/{rng.choice((s, s, s, *SONAMES))}" for s in SONAMES[2:]}
    plain = Machine(files, PROGRAM, cache=cache, default=("/c", "/a", "/b"))
    more = [
        replace(plain, library_path=some(rng, FOLDERS, 2), preload=_preload(rng)) for _ in range(3)
    ]
    return [plain, *more]


def _preload(rng: random.Random) -> tuple[str, ...]:
    names = (*SONAMES, *(f"{rng.choice(FOLDERS)}/{s}" for s in SONAMES))
    return some(rng, names, 2) if rng.random() < 0.3 else ()


def loads(machine: Machine, loaded: tuple[str, ...], targets: tuple[str, ...]) -> Iterator[Load]:
    """Yield what becomes of the start, and of each dlopen after it."""
    load = loader.start(machine)
    yield load
    process = loader.add(load.process, machine, loaded)
    for number, target in enumerate(targets):
        load = loader.dlopen(machine, process, target, everywhere=number == 0)
        yield load
        process = load.process


def test_random_machines_answer_alike_with_any_variables() -> None:
    kinds: Counter[str] = Counter()
    kept = dropped = 0
    for seed in range(1500):
        rng = random.Random(seed)  # noqa: S311 - the same every time
        machines = drawn(rng)
        paths = tuple(path for path in machines[0].files if path != PROGRAM)
        loaded = some(rng, paths, 2) if rng.random() < 0.3 else ()
        targets = (*rng.sample(paths, 3), "lib0.so")
        record = thinned(machines[0], *machines[1:], loaded=loaded)
        for machine in machines:
            less = replace(machine, files=record.files)
            both = zip(loads(machine, loaded, targets), loads(less, loaded, targets), strict=True)
            for whole, thinner in both:
                assert told(thinner) == told(whole), seed
                kinds[whole.problem.kind if whole.problem else "loads"] += 1
        kept += _count(record)
        dropped += _count(machines[0]) - _count(record)
    assert min(kinds[kind] for kind in ("loads", "symbol", "version", "missing", "not-whole")) > 99
    assert kept > 500
    assert dropped > 5000


def _count(machine: Machine) -> int:
    facts = {file.same: file.facts for file in machine.files.values()}
    return sum(len(each.symbols) for each in facts.values() if each)


# ---- what stays, and what does not --------------------------------------------------------------


def small_machine(*, second: tuple[str, ...] | None, needs: str = "libdep.so") -> Machine:
    """Return a machine on which ``libtop.so`` asks for ``f`` and ``g``, and one or two have them.

    What the one in the second place has is *second*.
    """
    top = SharedObject(soname="libtop.so", needed=(needs,), symbols=("f", "g"))
    dep = SharedObject(soname="libdep.so", defined=frozenset(map(symbol_hash, ("f", "g", "h"))))
    files = {
        PROGRAM: File(SharedObject(), "0"),
        "/a/libtop.so": File(top, "1"),
        "/a/libdep.so": File(dep, "2"),
    }
    if second is not None:
        facts = replace(dep, defined=frozenset(map(symbol_hash, second)))
        files["/b/libdep.so"] = File(facts, "3")
    return Machine(files, PROGRAM, default=("/a", "/b"))


@pytest.mark.parametrize(
    ("second", "symbols"),
    [
        (None, ()),
        (("f", "g"), ()),
        (("f",), ("g",)),
        ((), ("f", "g")),
    ],
)
def test_only_what_one_of_two_candidates_lacks_stays(
    second: tuple[str, ...] | None, symbols: tuple[str, ...]
) -> None:
    files = thinned(small_machine(second=second)).files
    top, dep = files["/a/libtop.so"].facts, files["/a/libdep.so"].facts
    assert top is not None
    assert dep is not None
    assert top.symbols == symbols
    assert dep.defined == frozenset(map(symbol_hash, symbols))


def test_symbols_of_what_cannot_load_in_any_case_do_not_stay() -> None:
    top = thinned(small_machine(second=None, needs="libgone.so")).files["/a/libtop.so"].facts
    assert top is not None
    assert top.symbols == ()


@pytest.mark.parametrize("name", ["libdep.so", "$ORIGIN/libdep.so"])
def test_versions_stay_beside_a_needed_file_that_was_not_looked_into(name: str) -> None:
    wants = (VersionNeed(name, ("V_1",)),)
    top = SharedObject(soname="libtop.so", needed=(name, "libhid.so"), wants=wants)
    dep = SharedObject(soname="libdep.so", offers=frozenset(("V_0",)))
    files = {
        PROGRAM: File(SharedObject(), "0"),
        "/a/libtop.so": File(top, "1"),
        "/a/libdep.so": File(dep, "2"),
        "/a/libhid.so": File(None, "3"),
    }
    less = thinned(Machine(files, PROGRAM, default=("/a",)), loaded=("/a/libhid.so",))
    assert less.files["/a/libtop.so"].facts == top


def test_a_symbol_that_nothing_has_stays() -> None:
    machine = small_machine(second=None)
    dep = replace(machine.files["/a/libdep.so"], facts=SharedObject(soname="libdep.so"))
    less = thinned(replace(machine, files={**machine.files, "/a/libdep.so": dep}))
    top = less.files["/a/libtop.so"].facts
    assert top is not None
    assert top.symbols == ("f", "g")
