from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.windows.machines import folder
from windows.dll_facts import DllFacts, Need, Version, hashed
from windows.loader import (
    ALTERED,
    DEFAULT_DIRS,
    LOAD_DIR,
    Folder,
    Load,
    Machine,
    Module,
    Role,
    find,
    load,
)

APP, SYSTEM, LIB, FIRST, SECOND, PATH = (
    r"C:\Python311",
    r"C:\Windows\System32",
    r"C:\site\torch\lib",
    r"C:\site\first",
    r"C:\site\second",
    r"D:\tools",
)
STRICT = LOAD_DIR | DEFAULT_DIRS


def dll(
    name: str,
    *needs: str | Need,
    exports: tuple[str, ...] = (),
    ordinals: tuple[tuple[int, int], ...] = (),
    version: Version | None = None,
    machine: str = "x64",
    broken: str | None = None,
) -> DllFacts:
    return DllFacts(
        name,
        needs=tuple(need if isinstance(need, Need) else Need(need) for need in needs),
        exports=frozenset(map(hashed, exports)),
        ordinals=ordinals,
        version=version,
        machine=machine,
        broken=broken,
    )


TOP = rf"{LIB}\top.dll"
NEEDS_DEP = dll("top.dll", "dep.dll")


def top(*places: tuple[str, Role], need: str = "dep.dll", **found: DllFacts) -> Machine:
    """Return a machine with top.dll in LIB, and dep.dll in each of *places*."""
    dep = found.get("dep", dll("dep.dll"))
    folders = [folder(path, role, dep) for path, role in places]
    lib = next((f for f in folders if f.path == LIB), folder(LIB, "package"))
    rest = [f for f in folders if f.path != LIB]
    home = replace(lib, files={**lib.files, "top.dll": dll("top.dll", need)})
    return Machine((home, *rest))


def taken(result: Load, name: str = "dep.dll") -> str:
    """Return where *name* was loaded from."""
    assert result.error == 0, result.problems
    return result.machine.loaded[name].path.rpartition("\\")[0]


# ---- which folders, in which order ----


@pytest.mark.parametrize(
    ("flags", "places", "wins"),
    [
        (STRICT, [(APP, "application"), (LIB, "package")], LIB),
        (DEFAULT_DIRS, [(APP, "application"), (LIB, "package")], APP),
        (STRICT, [(FIRST, "registered"), (APP, "application")], APP),
        (STRICT, [(SYSTEM, "system32"), (FIRST, "registered")], FIRST),
        (STRICT, [(SYSTEM, "system32"), (APP, "application")], APP),
        (STRICT, [(FIRST, "registered"), (SECOND, "registered")], SECOND),
        (0, [(LIB, "package"), (APP, "application")], APP),
        (0, [(PATH, "path"), (SYSTEM, "system32")], SYSTEM),
        (0, [(PATH, "path"), (r"C:\work", "working")], r"C:\work"),
        (0, [(r"C:\work", "working"), (r"C:\Windows", "windows")], r"C:\Windows"),
        (0, [(PATH, "path"), (r"D:\more", "path")], PATH),
        (ALTERED, [(LIB, "package"), (APP, "application")], LIB),
        (ALTERED, [(SYSTEM, "system32"), (PATH, "path")], SYSTEM),
    ],
)
def test_folders_are_searched_in_the_order_of_the_flags(
    flags: int, places: list[tuple[str, Role]], wins: str
) -> None:
    for order in (places, places[::-1]):
        if len({role for _, role in places}) > 1 or order is places:
            assert taken(load(top(*order), TOP, flags)) == wins


@pytest.mark.parametrize(
    ("flags", "place", "role"),
    [
        (STRICT, PATH, "path"),
        (STRICT, r"C:\work", "working"),
        (STRICT, r"C:\Windows", "windows"),
        (STRICT, r"C:\site\other", "package"),
        (DEFAULT_DIRS, LIB, "package"),
        (DEFAULT_DIRS, PATH, "path"),
        (0, FIRST, "registered"),
        (0, LIB, "package"),
        (ALTERED, FIRST, "registered"),
        (ALTERED, APP, "application"),
        (LOAD_DIR, APP, "application"),
    ],
)
def test_other_folders_are_not_searched(flags: int, place: str, role: Role) -> None:
    result = load(top((place, role)), TOP, flags)
    assert (result.error, result.problems[0].culprit) == (126, "dep.dll")


def test_the_order_of_registered_folders_can_be_turned_round() -> None:
    machine = top((FIRST, "registered"), (SECOND, "registered"))
    assert taken(load(replace(machine, newest_first=False), TOP)) == FIRST


def test_a_registered_folder_is_searched_from_then_on() -> None:
    machine = top((FIRST, "package"))
    assert load(machine, TOP).error == 126
    assert taken(load(machine.register(FIRST), TOP)) == FIRST
    assert machine.register(r"C:\not\there") == machine


def test_the_folder_of_the_asked_file_is_searched_not_that_of_what_it_needs() -> None:
    middle = folder(FIRST, "registered", dll("dep.dll", "deep.dll"))
    machine = Machine((folder(LIB, "package", NEEDS_DEP), middle))
    beside = replace(middle, files={**middle.files, "deep.dll": dll("deep.dll")})
    assert load(machine, TOP).error == 126
    assert load(Machine((*machine.folders[:1], beside)), TOP).error == 0
    hidden = replace(beside, role="package")
    loaded = {"dep.dll": Module(rf"{FIRST}\dep.dll", dll("dep.dll", "deep.dll"))}
    assert load(Machine((*machine.folders[:1], hidden), loaded=loaded), TOP).error == 0
    assert load(Machine((*machine.folders[:1], hidden)), TOP).error == 126


def test_a_name_is_found_however_it_is_spelled() -> None:
    machine = Machine(
        (
            folder(LIB, "package", dll("top.dll", "DEP.Dll")),
            folder(SYSTEM, "system32", dll("Dep.DLL")),
        )
    )
    assert taken(load(machine, r"c:\SITE\torch\lib\TOP.dll")) == SYSTEM


def test_a_name_without_an_ending_is_a_dll() -> None:
    assert taken(load(top((SYSTEM, "system32"), need="dep"), TOP)) == SYSTEM
    assert load(top((SYSTEM, "system32"), need="dep."), TOP).error == 126


# ---- before any folder ----


def test_an_api_set_is_no_file() -> None:
    machine = Machine((folder(LIB, "package", dll("top.dll", "api-ms-win-crt-heap-l1-1-0.dll")),))
    assert load(machine, TOP).error == 0


def test_an_api_set_that_this_windows_has_not_is_looked_for_as_a_file() -> None:
    name = "api-ms-win-new-l1-1-0.dll"
    machine = Machine(
        (folder(LIB, "package", dll("top.dll", name)),),
        api_sets=frozenset({"api-ms-win-crt-heap-l1-1-0.dll"}),
    )
    assert load(machine, TOP).problems[0].culprit == name
    beside = folder(LIB, "package", dll("top.dll", name), dll(name))
    assert load(replace(machine, folders=(beside,)), TOP).error == 0


def test_a_loaded_dll_answers_for_its_name_whatever_folder_it_came_from() -> None:
    machine = top((LIB, "package"), (APP, "application"))
    before = replace(machine, loaded={"dep.dll": Module(rf"{PATH}\dep.dll", dll("dep.dll"))})
    assert taken(load(before, TOP)) == PATH


def test_a_loaded_dll_does_not_answer_for_another_name() -> None:
    before = replace(
        top((LIB, "package")), loaded={"dep-1.dll": Module(rf"{PATH}\dep-1.dll", dll("dep-1.dll"))}
    )
    assert taken(load(before, TOP)) == LIB


def test_a_known_dll_comes_from_system32_only() -> None:
    own = folder(LIB, "package", dll("top.dll", "ole32.dll"), dll("ole32.dll", "nowhere.dll"))
    machine = Machine((own, folder(SYSTEM, "system32", dll("ole32.dll"))))
    assert load(machine, TOP).error == 0
    not_known = replace(machine, known_dlls=frozenset())
    assert load(not_known, TOP).problems[0].culprit == "nowhere.dll"


def test_a_second_file_of_one_name_is_a_second_module_when_given_by_its_path() -> None:
    machine = top((LIB, "package"), dep=dll("dep.dll", "gone.dll"))
    before = replace(machine, loaded={"dep.dll": Module(rf"{PATH}\dep.dll", dll("dep.dll"))})
    assert load(before, rf"{LIB}\dep.dll").problems[0].culprit == "gone.dll"
    assert load(before, rf"{PATH}\dep.dll").error == 0
    assert load(before, "dep.dll", DEFAULT_DIRS).error == 0


def test_the_first_of_two_modules_of_one_name_goes_on_answering() -> None:
    before = replace(
        top((LIB, "package")), loaded={"dep.dll": Module(rf"{PATH}\dep.dll", dll("dep.dll"))}
    )
    after = load(before, rf"{LIB}\dep.dll")
    assert taken(after) == PATH


# ---- what is part of Windows ----


def windows(need: str, *, complete: bool) -> Load:
    lib = folder(LIB, "package", dll("top.dll", need))
    return load(Machine((lib, Folder(SYSTEM, "system32", {}, complete=complete))), TOP)


def test_a_part_of_windows_is_there_unless_system32_was_listed_whole() -> None:
    assert windows("DBGHELP.dll", complete=False).error == 0
    assert not windows("DBGHELP.dll", complete=False).assumed
    assert windows("DBGHELP.dll", complete=True).error == 126


def test_what_not_every_windows_has_is_assumed_and_that_is_said() -> None:
    result = windows("MFPlat.DLL", complete=False)
    assert result.error == 0
    assert "mfplat.dll" in result.assumed[0]
    assert windows("MFPlat.DLL", complete=True).problems[0].culprit == "MFPlat.DLL"


def test_the_runtime_is_no_part_of_windows() -> None:
    assert windows("MSVCP140.dll", complete=False).error == 126


# ---- mapping: 126 and 193 ----


def test_a_file_that_is_not_there_is_the_culprit_itself() -> None:
    result = load(top(), rf"{LIB}\none.dll")
    assert (result.error, result.problems[0].chain) == (126, ("none.dll",))
    result = load(top(), "none.dll", DEFAULT_DIRS)
    assert (result.error, result.problems[0].culprit) == (126, "none.dll")


def test_the_chain_leads_from_the_asked_file_to_what_is_missing() -> None:
    machine = Machine(
        (
            folder(
                LIB,
                "package",
                dll("top.dll", "middle.dll"),
                dll("Middle.dll", "Deep.dll"),
                dll("deep.dll", "GONE.dll"),
            ),
        )
    )
    (problem,) = load(machine, TOP).problems
    assert problem.kind == "missing"
    assert problem.culprit == "GONE.dll"
    assert problem.chain == ("top.dll", "Middle.dll", "deep.dll", "GONE.dll")


def test_all_that_is_missing_is_told_once_the_nearest_first() -> None:
    machine = Machine(
        (
            folder(
                LIB,
                "package",
                dll("top.dll", "middle.dll", "near.dll"),
                dll("middle.dll", "far.dll", "near.dll"),
            ),
        )
    )
    assert [p.culprit for p in load(machine, TOP).problems] == ["near.dll", "far.dll"]


def test_what_is_looked_for_at_the_first_call_only_need_not_be_there() -> None:
    lazy = replace(dll("top.dll"), delayed=(Need("nvcuda.dll"),))
    assert load(Machine((folder(LIB, "package", lazy),)), TOP).error == 0


@pytest.mark.parametrize("broken", ["it is empty", "it ends at 5 of at least 10 bytes"])
def test_a_file_that_is_not_whole_is_193_and_the_culprit_also_when_another_is_named(
    broken: str,
) -> None:
    machine = top((LIB, "package"), dep=dll("dep.dll", broken=broken))
    (problem,) = load(machine, TOP).problems
    assert (problem.kind, problem.error, problem.detail) == ("not-whole", 193, broken)
    assert problem.culprit == rf"{LIB}\dep.dll"
    assert problem.chain == ("top.dll", "dep.dll")
    assert load(machine, rf"{LIB}\dep.dll").error == 193
    assert load(machine.register(LIB), "dep.dll", DEFAULT_DIRS).error == 193


def test_a_file_that_is_not_whole_does_no_harm_where_nothing_needs_it() -> None:
    machine = top((LIB, "package"))
    spoiled = folder(FIRST, "registered", dll("dep.dll", broken="it is empty"))
    assert load(replace(machine, folders=(*machine.folders, spoiled)), TOP).error == 0


def test_a_file_for_another_processor_is_passed_over_while_there_is_a_better_one() -> None:
    wrong, right = dll("dep.dll", machine="x86"), dll("dep.dll")
    lib = folder(LIB, "package", NEEDS_DEP, wrong)
    assert taken(load(Machine((lib, folder(SYSTEM, "system32", right))), TOP)) == SYSTEM
    (problem,) = load(Machine((lib,)), TOP).problems
    assert (problem.kind, problem.error) == ("wrong-machine", 193)
    assert problem.culprit == rf"{LIB}\dep.dll"
    assert "x86" in problem.detail


def test_the_asked_file_for_another_processor_is_193() -> None:
    machine = Machine((folder(LIB, "package", dll("top.dll", machine="arm64")),))
    assert load(machine, TOP).problems[0].kind == "wrong-machine"
    assert load(replace(machine, machine="arm64"), TOP).error == 0


def test_system32_of_an_arm64_windows_serves_emulated_programs() -> None:
    machine = top((SYSTEM, "system32"), dep=dll("dep.dll", machine="arm64"))
    assert load(machine, TOP).error == 0
    elsewhere = top((APP, "application"), dep=dll("dep.dll", machine="arm64"))
    assert load(elsewhere, TOP).error == 193


def test_dlls_that_need_each_other_load() -> None:
    circle = folder(LIB, "package", dll("top.dll", "dep.dll"), dll("dep.dll", "top.dll"))
    assert load(Machine((circle,)), TOP).error == 0


def test_what_failed_leaves_nothing_behind() -> None:
    lib = folder(LIB, "package", dll("top.dll", "dep.dll", "gone.dll"), dll("dep.dll"))
    result = load(Machine((lib,)), TOP)
    assert result.error == 126
    assert not result.machine.loaded


def test_what_nobody_looked_into_is_taken_to_load_and_that_is_said() -> None:
    lib = Folder(LIB, "package", {"top.dll": NEEDS_DEP, "dep.dll": None})
    result = load(Machine((lib,)), TOP)
    assert result.error == 0
    assert result.assumed == (rf"{LIB}\dep.dll was not looked into",)


# ---- binding: 127 and 182 ----


def symbols(need: Need, source: DllFacts) -> Load:
    return load(Machine((folder(LIB, "package", dll("top.dll", need), source),)), TOP)


def test_a_missing_name_is_127_and_a_missing_ordinal_182() -> None:
    source = dll("dep.dll", exports=("there",), ordinals=((1, 3),))
    by_name = symbols(Need("dep.dll", ("there", "gone"), (2,)), source)
    by_ordinal = symbols(Need("dep.dll", ("there",), (2, 9)), source)
    assert (by_name.error, by_name.problems[0].symbols) == (127, ("gone",))
    assert (by_ordinal.error, by_ordinal.problems[0].symbols) == (182, ("#9",))
    assert by_name.problems[0].culprit == rf"{LIB}\dep.dll"
    assert by_name.problems[0].chain == ("top.dll", "dep.dll")


def test_names_and_ordinals_that_are_all_there_bind() -> None:
    source = dll("dep.dll", exports=("there",), ordinals=((1, 3),))
    assert symbols(Need("dep.dll", ("there",), (1, 2, 3)), source).error == 0


def test_what_a_file_offers_is_not_judged_when_it_could_not_be_read_and_that_is_said() -> None:
    unread = replace(dll("dep.dll"), damage=("exports: cut",))
    result = symbols(Need("dep.dll", ("f",)), unread)
    assert result.error == 0
    assert result.assumed == (rf"not all of {LIB}\dep.dll could be read",)


def test_symbols_are_those_of_the_file_that_wins() -> None:
    lib = folder(
        LIB, "package", dll("top.dll", Need("dep.dll", ("f",))), dll("dep.dll", exports=("f",))
    )
    old = {"dep.dll": Module(rf"{PATH}\dep.dll", dll("dep.dll"))}
    assert load(Machine((lib,)), TOP).error == 0
    assert load(Machine((lib,), loaded=old), TOP).problems[0].culprit == rf"{PATH}\dep.dll"


def test_a_missing_dll_hides_a_missing_name() -> None:
    lib = folder(
        LIB, "package", dll("top.dll", Need("dep.dll", ("f",)), "gone.dll"), dll("dep.dll")
    )
    assert load(Machine((lib,)), TOP).error == 126


# ---- initialising: 1114 ----

CONSTEXPR = Need("MSVCP140.dll", ("_Mtx_lock", "_Mtx_unlock"))
CLASSIC = Need("MSVCP140.dll", ("_Mtx_lock", "_Mtx_unlock", "_Mtx_init_in_situ"))


def mutex(need: Need, version: Version | None, *more: str) -> Load:
    msvcp = dll(
        "msvcp140.dll", exports=("_Mtx_lock", "_Mtx_unlock", "_Mtx_init_in_situ"), version=version
    )
    lib = folder(LIB, "package", dll("top.dll", need, *more))
    return load(Machine((lib, folder(SYSTEM, "system32", msvcp))), TOP)


def test_an_old_runtime_under_a_constexpr_mutex_is_1114() -> None:
    result = mutex(CONSTEXPR, (14, 36, 32532, 0))
    (problem,) = result.problems
    assert (problem.kind, result.error) == ("old-runtime", 1114)
    assert problem.culprit == rf"{SYSTEM}\msvcp140.dll"
    assert problem.chain == ("top.dll", "msvcp140.dll")
    assert problem.detail == "it is 14.36.32532.0, top.dll needs 14.39"


@pytest.mark.parametrize(
    ("need", "version"),
    [
        (CONSTEXPR, (14, 39, 33520, 0)),
        (CONSTEXPR, (14, 40)),
        (CONSTEXPR, (14, 40, 33810, 0)),
        (CONSTEXPR, (14, 51, 36247, 0)),
        (CLASSIC, (14, 0, 24247, 2)),
        (Need("MSVCP140.dll", ("_Mtx_init_in_situ",)), (14, 26, 0, 0)),
    ],
)
def test_a_new_runtime_or_a_classic_mutex_is_well(need: Need, version: Version) -> None:
    assert mutex(need, version).error == 0


@pytest.mark.parametrize("version", [(14, 37), (14, 38, 33135, 0)])
def test_a_runtime_between_the_two_that_were_tried_is_taken_to_do_and_that_is_said(
    version: Version,
) -> None:
    result = mutex(CONSTEXPR, version)
    assert result.error == 0
    assert "in between" in result.assumed[0]
    assert not mutex(CONSTEXPR, (14, 39)).assumed


def test_a_missing_dll_hides_an_old_runtime() -> None:
    result = mutex(CONSTEXPR, (14, 36, 0, 0), "vcruntime140_threads.dll")
    assert (result.error, result.problems[0].culprit) == (126, "vcruntime140_threads.dll")


def test_a_missing_name_hides_an_old_runtime() -> None:
    need = Need("MSVCP140.dll", (*CONSTEXPR.names, "gone"))
    assert mutex(need, (14, 36, 0, 0)).error == 127


def test_a_runtime_of_unknown_version_is_taken_to_do_and_that_is_said() -> None:
    result = mutex(CONSTEXPR, None)
    assert result.error == 0
    assert "version" in result.assumed[0]


# ---- any machine ----

ALPHABET = [f"{letter}.dll" for letter in "abcdef"]
NEEDS = st.lists(
    st.builds(
        Need,
        st.sampled_from([*ALPHABET, "KERNEL32.dll", "api-ms-win-crt-heap-l1-1-0.dll"]),
        st.lists(st.sampled_from(["f", "g"]), max_size=2).map(tuple),
    ),
    max_size=4,
).map(tuple)
FILES = st.dictionaries(
    st.sampled_from(ALPHABET),
    st.none()
    | st.builds(
        DllFacts,
        name=st.sampled_from(ALPHABET),
        needs=NEEDS,
        exports=st.sampled_from([frozenset({hashed("f")}), frozenset({hashed("f"), hashed("g")})]),
        machine=st.sampled_from(["x64", "x64", "x64", "x86"]),
        broken=st.sampled_from([None, None, None, "it is empty"]),
    ),
)


def named_right(files: dict[str, DllFacts | None]) -> dict[str, DllFacts | None]:
    return {name: facts and replace(facts, name=name) for name, facts in files.items()}


@given(FILES.map(named_right), FILES.map(named_right), st.sampled_from([0, 8, 0x1000, 0x1100]))
@settings(max_examples=300)
def test_whatever_is_there_loads_whole_or_says_what_is_wrong(
    lib: dict[str, DllFacts | None], system: dict[str, DllFacts | None], flags: int
) -> None:
    machine = Machine(
        (Folder(LIB, "package", lib), Folder(SYSTEM, "system32", system, complete=False))
    )
    result = load(machine, rf"{LIB}\a.dll", flags)
    if result.error:
        problem = result.problems[0]
        assert result.error == problem.error
        assert problem.chain[0] == "a.dll"
        assert problem.chain[-1] == problem.culprit.rpartition("\\")[2]
        assert result.machine == machine
        return
    for module in result.machine.loaded.values():
        assert module.facts is None or not module.facts.broken
        for need in module.facts.needs if module.facts else ():
            if need.dll in ALPHABET:
                source = result.machine.loaded[need.dll].facts
                assert source is None or not source.lacks(need)


def test_a_chain_of_many_thousand_dlls_takes_no_longer_than_it_is_long() -> None:
    many = [dll(f"d{i}.dll", f"d{i + 1}.dll") for i in range(20_000)]
    result = load(Machine((folder(LIB, "package", *many),)), rf"{LIB}\d0.dll")
    (problem,) = result.problems
    assert len(problem.chain) == 20_001


# ---- which file a name leads to ----


def test_a_bare_name_with_the_flag_for_its_folder_is_refused() -> None:
    machine = top((SYSTEM, "system32"))
    result = load(machine, "dep.dll", LOAD_DIR | DEFAULT_DIRS)
    assert (result.error, result.problems[0].kind) == (87, "no-path")
    assert load(machine, "dep.dll", DEFAULT_DIRS).error == 0
    assert load(machine, rf"{SYSTEM}\dep.dll", LOAD_DIR | DEFAULT_DIRS).error == 0


def test_that_a_search_goes_on_after_a_file_for_another_processor_is_said() -> None:
    home = folder(LIB, "package", dll("top.dll", "dep.dll"), dll("dep.dll", machine="arm64"))
    whole = folder(SYSTEM, "system32", dll("dep.dll"))
    result = load(Machine((home, whole)), TOP)
    assert result.error == 0
    assert rf"{LIB}\dep.dll is passed over" in result.assumed[0]
    assert not load(Machine((folder(LIB, "package", dll("top.dll")), whole)), TOP).assumed


def test_a_name_leads_to_the_file_that_wins() -> None:
    machine = top((SYSTEM, "system32"), (APP, "application"))
    found = find(machine, "dep.dll")
    assert found is not None
    assert found.path == rf"{APP}\dep.dll"
    assert find(machine, "none.dll") is None
