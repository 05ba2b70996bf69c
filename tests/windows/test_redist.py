from __future__ import annotations

import pytest

from tests.windows.machines import LIB, facts, machine
from windows.dll_facts import DllFacts, Need, Version
from windows.loader import find
from windows.redist import (
    MSVCP,
    Judged,
    Registered,
    Requirement,
    Winner,
    constexpr_mutex,
    judge,
    of_runtime,
    redistributable,
    requirements,
)


def torch(version: str) -> tuple[Requirement, ...]:
    files = facts("torch")[version]
    return requirements({rf"{LIB}\{name}": file for name, file in files.items()})


def by_kind(found: tuple[Requirement, ...], kind: str) -> dict[str, Version | None]:
    return {r.dll: r.at_least for r in found if r.kind == kind}


# ---- what files need --------------------------------------------------------------------------

BASE = {"msvcp140.dll", "vcruntime140.dll", "vcruntime140_1.dll"}


@pytest.mark.parametrize(
    ("version", "more", "mutex", "linker", "lowest"),
    [
        ("2.0.1", set(), False, (14, 34), (14, 34)),
        ("2.3.0", {"vcomp140.dll"}, False, (14, 29), (14, 29)),
        ("2.4.0", {"vcomp140.dll", "libomp140.x86_64.dll"}, False, (14, 29), (14, 29)),
        ("2.4.1", set(), False, (14, 29), (14, 29)),
        ("2.9.1", set(), True, (14, 42), (14, 42)),
        ("2.13.0", {"msvcp140_atomic_wait.dll"}, True, (14, 42), (14, 42)),
        (
            "2.14.1",
            {"msvcp140_atomic_wait.dll", "vcruntime140_threads.dll"},
            True,
            (14, 42),
            (14, 42),
        ),
    ],
)
def test_each_torch_needs_the_runtime_that_its_files_show(
    version: str, more: set[str], *, mutex: bool, linker: Version, lowest: Version
) -> None:
    found = torch(version)
    assert set(by_kind(found, "present")) == BASE | more
    assert by_kind(found, "mutex") == ({MSVCP: (14, 39)} if mutex else {})
    assert by_kind(found, "rule") == {MSVCP: linker}
    assert redistributable(found) == lowest


def test_a_need_says_who_asks() -> None:
    (mutex,) = (r for r in torch("2.9.1") if r.kind == "mutex")
    assert rf"{LIB}\c10.dll" in mutex.files
    assert rf"{LIB}\uv.dll" not in mutex.files


def test_a_dll_that_no_redistributable_carries_is_told_from_one_that_it_does() -> None:
    carried = {r.dll: r.redistributable for r in torch("2.4.0") if r.kind == "present"}
    assert carried["libomp140.x86_64.dll"] is False
    assert carried["vcomp140.dll"] is True


def test_a_dll_that_came_later_asks_for_the_version_that_carries_it() -> None:
    since = by_kind(torch("2.14.1"), "present")
    assert since["vcruntime140_threads.dll"] == (14, 40)
    assert since["msvcp140_atomic_wait.dll"] == (14, 29)
    assert since["msvcp140.dll"] is None


def test_what_no_redistributable_carries_asks_for_none() -> None:
    other = Requirement("present", "other.dll", ("a.dll",), (99, 0), redistributable=False)
    assert redistributable([other]) is None
    assert redistributable([other, MUTEX]) == (14, 39)


def test_files_without_a_runtime_need_none() -> None:
    assert requirements({"a.dll": DllFacts("a.dll", linker=(14, 42))}) == ()
    assert redistributable(()) is None


@pytest.mark.parametrize("linker", [(2, 38), (14, 0), None])
def test_the_numbers_of_other_linkers_are_no_toolset(linker: tuple[int, int] | None) -> None:
    found = requirements({"a.dll": DllFacts("a.dll", linker=linker, needs=(Need("MSVCP140.dll"),))})
    assert [r.kind for r in found] == ["present"]


def test_the_runtime_does_not_ask_for_itself() -> None:
    assert requirements(facts("runtime")["14.51.36231"]) == ()


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.0.1", False), ("2.4.1", False), ("2.9.1", True), ("2.13.0", True), ("2.14.1", True)],
)
def test_the_mutex_is_read_off_the_imports(version: str, *, expected: bool) -> None:
    assert constexpr_mutex(facts("torch")[version]["c10.dll"]) is expected


def test_a_file_without_mutexes_is_neither() -> None:
    assert not constexpr_mutex(DllFacts("a.dll"))
    assert not constexpr_mutex(DllFacts("a.dll", needs=(Need("MSVCP140.dll", ("_Cnd_wait",)),)))


def test_parts_of_the_runtime_are_known_however_they_are_spelled() -> None:
    assert of_runtime("MSVCP140.dll")
    assert not of_runtime("msvcp140-0fb2.dll")
    assert not of_runtime("libiomp5md.dll")


@pytest.mark.parametrize("version", sorted(facts("runtime")))
def test_the_table_says_of_each_runtime_what_it_carries(version: str) -> None:
    number = tuple(map(int, version.split(".")))
    carried = set(facts("runtime")[version])
    for name in ("msvcp140_atomic_wait.dll", "vcruntime140_threads.dll", "vcruntime140_1.dll"):
        (need,) = requirements({"a.dll": DllFacts("a.dll", needs=(Need(name),))})
        assert need.at_least is not None
        assert (name in carried) is (number >= need.at_least)


# ---- what they get ----------------------------------------------------------------------------

MUTEX = Requirement("mutex", MSVCP, ("c10.dll",), (14, 39))
THERE = Requirement("present", MSVCP, ("c10.dll",))
RULE = Requirement("rule", MSVCP, ("c10.dll",), (14, 42))
OLD = Winner(r"C:\env\msvcp140.dll", (14, 29, 30133, 0))
NEW = Winner(r"C:\Windows\System32\msvcp140.dll", (14, 44, 35211, 0))
BETWEEN = Winner(r"C:\Windows\System32\msvcp140.dll", (14, 40, 33810, 0))
REGISTERED = Registered("64", "x64", (14, 44, 35211))


def one(need: Requirement, winner: Winner | None, *registry: Registered) -> Judged:
    (found,) = judge([need], {MSVCP: winner}, registry)
    return found


@pytest.mark.parametrize(
    ("need", "winner", "state"),
    [
        (THERE, OLD, "met"),
        (THERE, None, "absent"),
        (MUTEX, OLD, "older"),
        (MUTEX, BETWEEN, "met"),
        (MUTEX, None, "absent"),
        (MUTEX, Winner("x", (14, 39, 33520, 0)), "met"),
        (MUTEX, Winner("x", (14, 38, 33135, 0)), "unknown"),
        (MUTEX, Winner("x", (14, 37)), "unknown"),
        (MUTEX, Winner("x", (14, 36, 32532, 0)), "older"),
        (RULE, BETWEEN, "older"),
        (RULE, NEW, "met"),
        (MUTEX, Winner("x", None), "unknown"),
        (THERE, Winner("x", None), "met"),
    ],
)
def test_the_file_that_wins_decides(need: Requirement, winner: Winner | None, state: str) -> None:
    found = one(need, winner)
    assert (found.state, found.winner) == (state, winner)


def test_a_name_that_was_not_looked_for_is_unknown() -> None:
    (found,) = judge([MUTEX], {})
    assert found.state == "unknown"


def test_the_registry_alone_never_says_that_it_is_there() -> None:
    found = one(THERE, None, REGISTERED)
    assert found.state == "absent"
    assert found.contradicts_registry


def test_a_new_entry_in_the_registry_does_not_outweigh_an_old_file() -> None:
    found = one(MUTEX, OLD, REGISTERED)
    assert (found.state, found.registered) == ("older", (14, 44, 35211))
    assert found.contradicts_registry


@pytest.mark.parametrize(
    "entry",
    [
        Registered("64", "x64", (14, 34, 31931)),
        Registered("64", "x64", (14, 44, 35211), installed=False),
        Registered("32", "x86", (14, 44, 35211)),
    ],
)
def test_an_entry_that_is_old_or_not_installed_or_for_another_processor_contradicts_nothing(
    entry: Registered,
) -> None:
    assert not one(MUTEX, OLD, entry).contradicts_registry


def test_the_newest_entry_of_both_views_counts() -> None:
    found = one(MUTEX, OLD, Registered("64", "x64", (14, 29)), Registered("32", "x64", (14, 44)))
    assert found.registered == (14, 44)


@pytest.mark.parametrize(
    ("vc", "states"),
    [
        ("none", {"present": "absent", "mutex": "absent", "rule": "absent"}),
        ("14.34", {"present": "met", "mutex": "older", "rule": "older"}),
        ("14.40", {"present": "met", "mutex": "met", "rule": "older"}),
        ("14.44", {"present": "met", "mutex": "met", "rule": "met"}),
    ],
)
def test_real_files_against_real_runtimes(vc: str, states: dict[str, str]) -> None:
    where = find(machine("2.9.1", vc), MSVCP)
    winner = Winner(where.path, where.facts.version) if where and where.facts else None
    found = judge(torch("2.9.1"), {MSVCP: winner})
    assert {j.requirement.kind: j.state for j in found if j.requirement.dll == MSVCP} == states
