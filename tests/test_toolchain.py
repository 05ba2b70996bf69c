"""Compilers, nvcc, ninja and ptxas are found: real programs on a PATH of the test's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from torchdoctor import child, toolchain
from torchdoctor.child import Run
from torchdoctor.facts import BuildTools, Compiler, Toolkit, Unknown
from torchdoctor.reading import build_tools

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")

GCC = "{} (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0\nCopyright (C) 2023 Free Software Foundation, Inc."
CLANG = "Ubuntu clang version 18.1.3 (1ubuntu1)\nTarget: x86_64-pc-linux-gnu"
CL = "Microsoft (R) C/C++ Optimizing Compiler Version 19.44.35211 for x64\nusage: cl"
NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.131"
PTXAS = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 12.8, V12.8.93"


def program(path: Path, says: str = "", code: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for PATH with gcc, g++ and c++."""
    for name in ("gcc", "g++", "c++"):
        program(tmp_path / "bin" / name, GCC.format(name))
    return tmp_path / "bin"


def looked(folder: Path, modules: object = None, **environ: str) -> Mapping[str, Run]:
    """Look for programs on a PATH of *folder* alone, with these variables."""
    known = {"PATH": str(folder), **environ}
    command = partial(child.run, timeout=10, folder=str(folder.parent), environ={"PATH": "/bin"})
    python = str(folder.parent / "env" / "bin" / "python")
    return toolchain.look(python, known, modules, command)


def read(folder: Path, modules: object = None, **environ: str) -> BuildTools:
    found = build_tools.read(looked(folder, modules, **environ))
    assert isinstance(found, BuildTools)
    return found


def test_the_usual_compilers_are_those_of_path(folder: Path) -> None:
    found = read(folder)
    assert found.cxx == Compiler("c++", str(folder / "c++"), "gcc", "13.3.0")
    assert found.cc == Compiler("gcc", str(folder / "gcc"), "gcc", "13.3.0")
    assert found.found == ("c++", "g++", "gcc")
    assert found.ninja is None
    assert found.ptxas == {}


def test_variables_name_others_through_wrappers_and_folders(folder: Path) -> None:
    clang = program(folder / "clang++", CLANG)
    found = read(folder, CXX="ccache clang++ -m64", CC=str(folder / "gcc"))
    assert found.cxx == Compiler("clang++", str(clang), "clang", "18.1.3", "CXX")
    assert isinstance(found.cc, Compiler)
    assert found.cc.named_by == "CC"
    found = read(folder, CXX="g++-99")
    assert found.cxx == Compiler("g++-99", None, named_by="CXX")
    assert read(folder, CXX="'half").cxx == Compiler("'half", None, named_by="CXX")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NVCC_PREPEND_FLAGS", "-O2 -ccbin {}"),
        ("NVCC_PREPEND_FLAGS", "--compiler-bindir={}"),
        ("NVCC_APPEND_FLAGS", '-ccbin "{}"'),
        ("NVCC_CCBIN", "{}"),
    ],
)
def test_nvcc_is_told_in_four_ways_which_compiler_to_call(
    folder: Path, variable: str, value: str
) -> None:
    older = program(folder / "old" / "gcc", "gcc (GCC) 11.4.0")
    found = read(folder, **{variable: value.format(older)})
    assert found.cc == Compiler(str(older), str(older), "gcc", "11.4.0", variable)
    by_folder = read(folder, **{variable: value.format(older.parent)})
    assert isinstance(by_folder.cc, Compiler)
    assert by_folder.cc.path == str(older)
    assert read(folder, **{variable: value.format(older), "CC": "gcc"}).cc == Compiler(
        "gcc", str(folder / "gcc"), "gcc", "13.3.0", "CC"
    )


def test_nvcc_may_be_told_to_take_any(folder: Path) -> None:
    assert read(folder, NVCC_APPEND_FLAGS="-allow-unsupported-compiler").unchecked is True
    assert read(folder, NVCC_APPEND_FLAGS="-O3").unchecked is False


def test_cuda_home_comes_before_path(folder: Path, tmp_path: Path) -> None:
    program(folder / "nvcc", NVCC)
    other = program(tmp_path / "cuda-13" / "bin" / "nvcc", NVCC.replace("12.4", "13.0"))
    home = str(other.parents[1])
    assert read(folder).nvcc == Toolkit("12.4", str(tmp_path), "nvcc --version")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        assert read(folder, **{variable: home}).nvcc == Toolkit("13.0", home, "nvcc --version")
    empty = read(folder, CUDA_HOME=str(folder))
    assert (empty.nvcc, empty.home) == (None, str(folder))


def test_what_nvcc_lists_is_kept_and_a_silent_one_is_unknown(folder: Path) -> None:
    program(folder / "nvcc", NVCC + "\nsm_75\nsm_120")
    assert read(folder).targets == ("75", "120")
    program(folder / "nvcc", "Segmentation fault", code=139)
    found = read(folder)
    assert isinstance(found.nvcc, Unknown)
    assert isinstance(found.targets, Unknown)


def test_a_program_in_the_environment_comes_first(folder: Path, tmp_path: Path) -> None:
    program(folder / "ninja", "1.10.0")
    own = program(tmp_path / "env" / "bin" / "ninja", "1.13.0")
    assert read(folder).ninja == str(own)


def test_an_environment_that_is_on_path_keeps_its_place(folder: Path, tmp_path: Path) -> None:
    first = program(folder / "ninja", "1.10.0")
    program(tmp_path / "env" / "bin" / "ninja", "1.13.0")
    both = f"{folder}:{tmp_path / 'env' / 'bin'}"
    assert read(folder, PATH=both).ninja == str(first)


def test_a_ninja_that_does_not_run_is_none(folder: Path) -> None:
    program(folder / "ninja", "ModuleNotFoundError", code=1)
    assert read(folder).ninja is None


def test_a_compiler_that_does_not_run_says_why(folder: Path) -> None:
    path = folder / "c++"
    path.write_text("#!/bin/sh\necho 'xcrun: error: invalid active developer path' >&2\nexit 1\n")
    found = read(folder).cxx
    assert isinstance(found, Compiler)
    assert (found.version, found.error) == (None, "xcrun: error: invalid active developer path")


def test_a_compiler_that_hangs_is_unknown(folder: Path, tmp_path: Path) -> None:
    (folder / "c++").write_text("#!/bin/sh\nexec sleep 30\n")
    command = partial(child.run, timeout=0.3, folder=str(tmp_path), environ={"PATH": "/bin"})
    found = build_tools.read(toolchain.look("/none", {"PATH": str(folder)}, None, command))
    assert isinstance(found, BuildTools)
    assert isinstance(found.cxx, Unknown)
    assert "did not end" in found.cxx.reason


def test_the_ptxas_of_triton_is_asked_unless_a_variable_names_another(
    folder: Path, tmp_path: Path
) -> None:
    own = tmp_path / "triton"
    for name in ("ptxas", "ptxas-blackwell"):
        program(own / "backends" / "nvidia" / "bin" / name, PTXAS)
    modules = {"triton": {"package": str(own)}}
    assert read(folder, modules).ptxas == {"ptxas": "12.8", "ptxas-blackwell": "12.8"}
    newer = program(tmp_path / "cuda" / "ptxas", PTXAS.replace("12.8", "13.0"))
    found = read(folder, modules, TRITON_PTXAS_PATH=str(newer)).ptxas
    assert found == {"ptxas": "13.0", "ptxas-blackwell": "12.8"}
    gone = read(folder, modules, TRITON_PTXAS_PATH="/no/ptxas").ptxas
    assert gone == {"ptxas": "12.8", "ptxas-blackwell": "12.8"}
    assert read(folder, {"triton": None}, TRITON_PTXAS_PATH=str(newer)).ptxas == {}


@pytest.mark.parametrize(
    ("banner", "known"),
    [
        (GCC.format("g++-13"), ("gcc", "13.3.0")),
        ("gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-28)", ("gcc", "8.5.0")),
        ("x86_64-conda-linux-gnu-c++ (conda-forge gcc 14.3.0-7) 14.3.0", ("gcc", "14.3.0")),
        (CLANG, ("clang", "18.1.3")),
        ("Apple clang version 17.0.0 (clang-1700.0.13.5)", ("clang", "17.0.0")),
        (CL, ("msvc", "19.44.35211")),
        ("Intel(R) oneAPI DPC++/C++ Compiler 2025.1.0 (2025.1.0.20250317)", None),
        ("", None),
    ],
)
def test_a_compiler_is_known_by_its_banner(banner: str, known: tuple[str, str] | None) -> None:
    assert build_tools.compiler_of(banner) == known


@pytest.mark.parametrize(
    "spoiled",
    [{}, {"cxx": []}, {"cxx": {"command": 1}}, {"found": 3}, {"unchecked": "yes"}, {"ninja": {}}],
)
def test_an_answer_of_another_shape_is_unknown_and_never_raises(spoiled: dict[str, object]) -> None:
    found = build_tools.read({"build tools": Run((), "answered", data=spoiled)})
    if isinstance(found, BuildTools):
        assert isinstance(found.cxx, Unknown)
        assert isinstance(found.headers, Unknown)
