"""What ``--profile build`` says, against torch's own rules and against real builds."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import environments
from tests.scenarios import doctor
from tests.scenarios.doctor import Scene
from torchdoctor import building, collect
from torchdoctor.facts import BuildTools, Expectation
from torchdoctor.reading import machine
from torchdoctor.tables import load, nvcc

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
]

INLINE = """
from torch.utils.cpp_extension import load_inline
print(load_inline("one", "int two() { return 2; }", functions=["two"]).two())
"""
ASK_TORCH = """
import json, os, sys
from pathlib import Path
import torch
from torch.torch_version import TorchVersion
from torch.utils import cpp_extension

asked = json.loads(sys.argv[1])
said = {"bounds": [], "lists": []}
for cuda, version, compiler, home in asked["bounds"]:
    torch.version.cuda, cpp_extension.CUDA_HOME = cuda, home
    try:
        cpp_extension._check_cuda_version(compiler, TorchVersion(version))
        said["bounds"].append("")
    except RuntimeError as error:
        said["bounds"].append(str(error))
for listed in asked["lists"]:
    os.environ["TORCH_CUDA_ARCH_LIST"] = listed
    try:
        said["lists"].append(cpp_extension._get_cuda_arch_flags())
    except ValueError as error:
        said["lists"].append(str(error))
print(json.dumps(said))
"""
LISTS = (
    *(
        "8.0",
        "8.0;8.6+PTX",
        "8.0 9.0a",
        "Ampere",
        "Hopper",
        "Blackwell",
        "Turing;8.9",
        "7.5 8.0;9.0",
    ),
    *("8.0,8.6", "sm_80", "80", "8.0;", "compute_80", "9.5", "8.0+ptx", "8", "ampere", "12.0f"),
)


def script(path: Path, text: str, code: int = 0) -> Path:
    """Write a program that prints *text* on both streams and exits with *code*."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def toolkit(folder: Path, release: str) -> Path:
    """Make what torch takes for a CUDA toolkit of *release*."""
    home = folder / f"cuda-{release}"
    script(home / "bin/nvcc", f"Cuda compilation tools, release {release}, V{release}.99")
    return home


def ask(asked: dict[str, object]) -> dict[str, list[object]]:
    """Return what the real torch says of *asked*."""
    base = environments.base().root
    line = [str(base / "bin" / "python"), "-c", ASK_TORCH, json.dumps(asked)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    answer: dict[str, list[object]] = json.loads(done.stdout)
    return answer


def test_torch_itself_refuses_what_the_tables_say_and_takes_the_lists_that_we_take(
    tmp_path: Path,
) -> None:
    # torch knows no bounds past 13.0, and lets gcc 13 through for 12.3, whose header does not.
    mine = [r for r in load("nvcc")["release"] if r not in ("11.8", "12.3", "13.1") and r < "13.1"]
    homes = {release: toolkit(tmp_path, release) for release in mine}
    bounds = [
        (torch, f"{major}.1.0", "g++", str(homes[release]))
        for release, torch in itertools.product(mine, ("12.6", "13.0"))
        for major in range(9, 18)
    ]
    said = ask({"bounds": bounds, "lists": LISTS})
    for (torch, version, _, home), answer in zip(bounds, said["bounds"], strict=True):
        release = home.rpartition("-")[2]
        other = release.partition(".")[0] != torch.partition(".")[0]
        newest = nvcc.newest_compiler(release, "gcc") or 0
        assert ("mismatches" in str(answer)) is other, (torch, home, answer)
        if not other:
            new = int(version.partition(".")[0]) > newest
            assert ("greater than the maximum" in str(answer)) is new, (version, home, answer)
    names = arch_names(environments.base().root / "bin" / "python")
    for listed, answer in zip(LISTS, said["lists"], strict=True):
        ours = building.entries({building.LIST: listed})
        assert all(one.arch in names for one in ours) is isinstance(answer, list), (listed, answer)
        if isinstance(answer, list):
            made = {flag.rpartition("sm_")[2] for flag in answer if "code=sm_" in flag}
            assert made == {one.target for one in ours}


def arch_names(python: Path) -> tuple[str, ...]:
    """Return what torch of *python* takes, as the doctor reads it."""
    request = collect.Request(
        str(python), str(python.parent), import_torch=False, profile="build", shared_objects=False
    )
    facts = machine.read(collect.collect(request, os.environ), Expectation())
    assert isinstance(facts.build_tools, BuildTools)
    assert isinstance(facts.build_tools.arch_names, tuple)
    return facts.build_tools.arch_names


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Make a machine with a real torch, on which extensions are compiled."""
    environment = environments.copy(tmp_path / "env", whole=False)
    variables = {"TORCH_EXTENSIONS_DIR": str(tmp_path / "extensions")}
    return Scene(tmp_path, environment, variables)


def compiled(scene: Scene, **more: str) -> subprocess.CompletedProcess[str]:
    """Compile an extension with what *scene* has, and call it."""
    line = [str(scene.environment.python), "-c", INLINE]
    environ = scene.environ(**more)
    return subprocess.run(
        line, cwd=scene.work, env=environ, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.skipif(shutil.which("ninja") is None, reason="needs ninja")
def test_a_variable_that_names_no_compiler_is_found_and_without_it_the_build_is_done(
    scene: Scene,
) -> None:
    scene.variables["CXX"] = "g++-99"
    assert compiled(scene).returncode != 0
    answer = doctor.check(scene, "--profile", "build", "--no-import")
    assert answer.unexplained == ["host-compiler-missing"]
    assert answer.commands == ["unset CXX"]
    assert doctor.check(scene, "--no-import").faults == []
    del scene.variables["CXX"]
    assert doctor.check(scene, "--profile", "build", "--no-import").faults == []
    done = compiled(scene)
    assert done.stdout.strip() == "2", done.stderr


def test_a_ninja_that_does_not_run_is_none_for_torch_and_for_us(scene: Scene) -> None:
    script(scene.bin / "ninja", "ModuleNotFoundError: No module named 'ninja'", code=1)
    answer = doctor.check(scene, "--profile", "build", "--no-import")
    assert answer.get("ninja-missing")["severity"] == "note"
    done = compiled(scene)
    assert done.returncode != 0
    log = scene.folder / "error.log"
    log.write_text(done.stderr, encoding="utf-8")
    told = doctor.elsewhere(scene, "--profile", "build", "--no-import", "--add", str(log))
    assert told.unexplained == ["ninja-missing"]


def label_for_cuda(scene: Scene, tag: str) -> str:
    """Make the torch of *scene* say that it is a build of *tag*; return its CUDA."""
    label = f"{environments.base().torch_version.partition('+')[0]}+{tag}"
    cuda = f"{tag[2:4]}.{tag[4]}"
    lines = f'__version__ = "{label}"\ncuda = "{cuda}"\nhip = None\nxpu = None\ngit_version = ""\n'
    changes = {"torch/version.py": lines}
    environments.relabel(scene.environment, label, changes=changes, requires=())
    return cuda


def test_the_real_compiler_is_too_new_for_an_old_toolkit_alone(
    scene: Scene, tmp_path: Path
) -> None:
    said = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True)
    own = int(said.stdout.partition(".")[0])
    label_for_cuda(scene, "cu118")
    scene.variables["CUDA_HOME"] = str(toolkit(tmp_path, "11.8"))
    asked = ("--profile", "build", "--no-import", "--only", "build-compiler")
    answer = doctor.check(scene, *asked)
    newest = nvcc.newest_compiler("11.8", "gcc") or 0
    assert answer.unexplained == (["host-compiler-too-new"] if own > newest else [])
    scene.variables["CUDA_HOME"] = str(toolkit(tmp_path, "11.7"))
    script(scene.bin / "g++-old", f"g++-old (Debian) {newest}.4.0")
    scene.variables.update(CC="g++-old", CXX="g++-old")
    assert doctor.check(scene, *asked).faults == []


@pytest.mark.skipif(not Path("/usr/local/cuda/bin/nvcc").is_file(), reason="needs a CUDA toolkit")
def test_a_real_nvcc_of_another_major_is_found_for_a_cuda_build(
    scene: Scene, tmp_path: Path
) -> None:
    real = subprocess.run(
        ["/usr/local/cuda/bin/nvcc", "--version"], capture_output=True, text=True, check=True
    ).stdout
    major = int(real.partition("release ")[2].partition(".")[0])
    tag = "cu126" if major >= 13 else "cu130"
    cuda = label_for_cuda(scene, tag)
    scene.variables["CUDA_HOME"] = "/usr/local/cuda"
    answer = doctor.check(scene, "--profile", "build", "--no-import", "--only", "build-toolkit")
    assert answer.unexplained == ["toolkit-mismatch"]
    scene.variables["CUDA_HOME"] = str(toolkit(tmp_path, cuda))
    answer = doctor.check(scene, "--profile", "build", "--no-import", "--only", "build-toolkit")
    assert answer.faults == []
