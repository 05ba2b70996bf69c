"""What nvcc of each release takes: invariants, public facts, and the programs themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from torchdoctor.tables import load, nvcc

RELEASES = list(load("nvcc")["release"])


def test_newer_releases_take_newer_compilers() -> None:
    assert [tuple(map(int, one.split("."))) for one in RELEASES] == sorted(
        tuple(map(int, one.split("."))) for one in RELEASES
    )
    for older, newer in pairwise(RELEASES):
        for kind in ("gcc", "clang", "msvc"):
            assert (nvcc.newest_compiler(older, kind) or 0) <= (
                nvcc.newest_compiler(newer, kind) or 0
            )


def test_within_a_major_no_gpu_is_dropped() -> None:
    for older, newer in pairwise(RELEASES):
        if older.partition(".")[0] == newer.partition(".")[0]:
            assert set(nvcc.targets(older) or ()) <= set(nvcc.targets(newer) or ())


def test_public_facts_of_the_release_notes_hold() -> None:
    assert "89" not in (nvcc.targets("11.7") or ())
    assert nvcc.first_with("90", "11") == "11.8"
    assert nvcc.first_with("120", "12") == "12.8"
    assert nvcc.first_with("121", "12") == "12.9"
    assert nvcc.first_with("61", "13") is None
    assert nvcc.newest_compiler("12.8", "gcc") == 14
    assert nvcc.first_gcc("20") == 10


def test_what_is_not_in_the_table_is_unknown() -> None:
    assert nvcc.targets("13.99") is None
    assert nvcc.newest_compiler("13.99", "gcc") is None
    assert nvcc.newest_compiler("12.8", "icc") is None
    assert nvcc.first_with("120", "99") is None
    assert nvcc.first_gcc("11") is None


# ---- the programs themselves ---------------------------------------------------------------------


def unpacked(folder: Path, *wheels: str) -> Path:
    """Return *folder* with what the *wheels* of the package index hold."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*command, *wheels], check=True, stderr=subprocess.DEVNULL)
    return folder


WHEELS = {
    "11.7": ("nvidia-cuda-nvcc-cu11==11.7.99",),
    "12.4": ("nvidia-cuda-nvcc-cu12==12.4.131",),
    "13.5": ("nvidia-cuda-nvcc==13.5.37", "nvidia-cuda-crt==13.5.37"),
}


@pytest.fixture(scope="module", params=list(WHEELS))
def toolkit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ptxas and headers of one release; its name ends in that release."""
    folder = tmp_path_factory.mktemp("nvcc") / request.param
    return unpacked(folder, *WHEELS[request.param])


def found(folder: Path, pattern: str) -> Path:
    return next(folder.rglob(pattern))


@pytest.mark.network
def test_ptxas_itself_lists_the_targets_of_the_table(toolkit: Path) -> None:
    program = found(toolkit, "bin/ptxas")
    program.chmod(0o755)
    said = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    listed = re.search(r"--gpu-name.*?Allowed values for this option:(.*?)Default", said, re.DOTALL)
    assert listed
    assert set(re.findall(r"'sm_(\w+)'", listed[1])) == set(nvcc.targets(toolkit.name) or ())


@pytest.mark.network
def test_the_header_refuses_the_gcc_of_here_by_the_table(toolkit: Path, tmp_path: Path) -> None:
    header = found(toolkit, "crt/host_config.h")
    version = subprocess.run(["g++", "-dumpversion"], check=True, capture_output=True, text=True)
    newest = nvcc.newest_compiler(toolkit.name, "gcc") or 0
    source = tmp_path / "one.cpp"
    source.write_text("")
    command = ["g++", "-fsyntax-only", "-D__CUDACC__", "-include", str(header), str(source)]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    refused = f"gcc versions later than {newest} are not supported" in made.stderr
    assert refused is (int(version.stdout) > newest)
    text = header.read_text("ascii")
    assert f"#if __GNUC__ > {newest}\n" in text
    assert f"(__clang_major__ >= {(nvcc.newest_compiler(toolkit.name, 'clang') or 0) + 1})" in text
    assert f"_MSC_VER >= {(nvcc.newest_compiler(toolkit.name, 'msvc') or 0) + 1}\n" in text


@pytest.mark.network
def test_nvcc_of_the_wheels_compiles_by_the_table(tmp_path: Path) -> None:
    wheels = [
        f"nvidia-{name}==13.5.*" for name in ("cuda-nvcc", "cuda-crt", "nvvm", "cuda-runtime")
    ]
    home = unpacked(tmp_path / "13.5", *wheels)
    program = found(home, "bin/nvcc")
    for tool in (*program.parent.iterdir(), *home.rglob("nvvm/bin/*")):
        tool.chmod(0o755) if tool.is_file() else None
    source = tmp_path / "one.cu"
    source.write_text("__global__ void one(float *x) { x[0] = 1; }\n")
    said = subprocess.run([program, "--list-gpu-code"], check=True, capture_output=True, text=True)
    plain = [one for one in nvcc.targets("13.5") or () if one.isdecimal()]
    assert sorted(re.findall(r"sm_(\d+)", said.stdout)) == sorted(plain)
    for target, makes in (("sm_61", False), ("sm_75", True), ("sm_120a", True)):
        command = [str(program), "-c", f"-arch={target}", str(source)]
        made = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
        assert (made.returncode == 0) is makes, made.stderr
        assert makes is (target.removeprefix("sm_") in (nvcc.targets("13.5") or ()))
