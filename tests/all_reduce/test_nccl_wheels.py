"""Which libnccl torch would get, and whether it has what torch asks of it: real wheels, no GPU.

Recorded from torch 2.14.1+cu130, whose libtorch_cuda.so asks for 51 symbols of NCCL, of which the
library of nvidia-nccl-cu12 2.20.5 lacks 21: once it was loaded first (LD_PRELOAD), once pip had
installed it over that of nvidia-nccl-cu13, which has the same path.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.test_cli import Ran
from torchdoctor import plan, snapshot
from torchdoctor.facts import Expectation, Facts, Linux, SoLoad
from torchdoctor.reading import machine
from torchdoctor.registry import all_checks
from torchdoctor.run import run

RECORDED = Path(__file__).with_name("nccl")
OLDER = "/opt/nccl-2.20.5/nvidia/nccl/lib/libnccl.so.2"
NEWER_NAMES = {"ncclCommShrink", "ncclCommWindowRegister", "ncclCommResume"}


def facts(name: str) -> Facts:
    return machine.read(snapshot.load(RECORDED / f"{name}.json"), Expectation())


def load(known: Facts) -> SoLoad:
    assert isinstance(known.linux, Linux)
    assert isinstance(known.linux.torch, SoLoad)
    return known.linux.torch


@pytest.mark.parametrize("name", ["older-preloaded", "cu12-over-cu13"])
def test_the_symbols_that_torch_asks_for_and_this_nccl_lacks_are_known_from_the_files(
    name: str,
) -> None:
    found = load(facts(name))
    assert found.kind == "symbol"
    assert found.culprit.endswith("torch/lib/libtorch_cuda.so")
    assert set(found.names) >= NEWER_NAMES
    assert found.message.endswith("libtorch_cuda.so: undefined symbol: ncclCommResume")


@pytest.mark.parametrize(
    ("name", "finding", "told", "command"),
    [
        ("older-preloaded", "cuda-lib-shadow", OLDER, "unset LD_PRELOAD"),
        (
            "cu12-over-cu13",
            "nvidia-wheels-mixed",
            "both write nvidia/nccl/lib/libnccl.so.2",
            "-m pip uninstall -y nvidia-nccl-cu12",
        ),
    ],
)
def test_the_cause_is_found_and_the_plan_cures_it(
    name: str, finding: str, told: str, command: str
) -> None:
    known = facts(name)
    checks = all_checks(())
    outcomes = run(checks, known)
    (error,) = [f for f in plan.findings_of(outcomes) if f.severity == "error"]
    assert error.name == finding
    assert told in error.summary
    made = plan.make(checks, known, outcomes)
    assert made.verdict != "broken"
    assert made.steps[0].step.commands.bash[0].endswith(command)


def test_without_the_variable_the_same_torch_loads() -> None:
    known = facts("older-preloaded").linux
    assert isinstance(known, Linux)
    assert isinstance(known.without, SoLoad)
    assert known.without.loads


# ---- the wheels themselves, several gigabytes ----------------------------------------------------


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with a CUDA build and what it needs."""
    root = tmp_path_factory.mktemp("cuda") / "env"
    subprocess.run((sys.executable, "-m", "venv", str(root)), check=True)
    python = root / "bin/python"
    subprocess.run((str(python), "-m", "pip", "install", "-q", "torch===2.14.1"), check=True)
    return python


def judged(python: Path, folder: Path, **variables: str) -> tuple[dict[str, str], list[str]]:
    """Return the errors and warnings of a check, and the first commands of its plan."""
    words = ("check", "--python", str(python), "--format", "json")
    report: dict[str, Any] = Ran(*words, cwd=folder, **variables).json  # type: ignore[arg-type]
    found = {f["name"]: f["severity"] for f in report["findings"] if f["severity"] != "note"}
    return found, [line for step in report["plan"] for line in step["commands"]["bash"][:1]]


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.skipif(sys.platform != "linux", reason="the wheels are for Linux")
def test_an_older_nccl_before_or_over_the_one_of_torch_is_found_and_put_right(
    cuda: Path, tmp_path: Path
) -> None:
    pip = (str(cuda), "-m", "pip")
    assert judged(cuda, tmp_path) == ({}, [])
    older = tmp_path / "older"
    wheel = "nvidia-nccl-cu12==2.20.5"
    target = ("--target", str(older))
    subprocess.run((*pip, "install", "-q", "--no-deps", *target, wheel), check=True)
    library = str(older / "nvidia/nccl/lib/libnccl.so.2")
    assert judged(cuda, tmp_path, LD_PRELOAD=library) == (
        {"cuda-lib-shadow": "error"},
        ["unset LD_PRELOAD"],
    )
    subprocess.run((*pip, "install", "-q", "--no-deps", wheel), check=True)
    found, commands = judged(cuda, tmp_path)
    assert found == {"nvidia-wheels-mixed": "error"}
    assert commands == [f"{cuda} -m pip uninstall -y nvidia-nccl-cu12"]
