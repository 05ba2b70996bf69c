"""``--profile`` on the command line, in a snapshot, and on pasted texts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.conftest import names
from tests.test_cli import Ran
from torchdoctor import collect, expectation, inputs
from torchdoctor.facts import BuildTools, Compiler, Expectation, Facts, Unknown
from torchdoctor.reading import machine
from torchdoctor.registry import load
from torchdoctor.run import looked
from torchdoctor.snapshot import dump, parse

LISTING = """\
PyTorch version: 2.1.2+cu118
Is debug build: False
CUDA used to build PyTorch: 11.8
ROCM used to build PyTorch: N/A

OS: Ubuntu 24.04.1 LTS (x86_64)
GCC version: (Ubuntu 13.2.0-23ubuntu4) 13.2.0
Clang version: Could not collect
Python version: 3.11.9 (64-bit runtime)
Is CUDA available: True
CUDA runtime version: 11.8.89
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB
Nvidia driver version: 535.183.01
"""


def of_text(text: str, profile: str | None = None) -> Facts:
    expected = expectation.under(Expectation(), {}, profile)
    return machine.read(inputs.of_text(text), expected)


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a snapshot of this machine, made for builds."""
    folder = str(tmp_path_factory.mktemp("cwd"))
    request = collect.Request(
        sys.executable, folder, import_torch=False, verify="none", profile="build"
    )
    return dump(collect.collect(request, os.environ)).encode()


def test_a_snapshot_keeps_what_it_was_made_for(taken: bytes) -> None:
    snapshot = parse(taken, "snapshot")
    assert expectation.kept(snapshot.options).profile == "build"
    facts = machine.read(snapshot, expectation.kept(snapshot.options))
    assert isinstance(facts.build_tools, BuildTools)
    assert facts.build_tools.headers in (True, False)
    asked = expectation.under(Expectation(), snapshot.options, "run")
    assert asked.profile == "run"


def test_a_profile_that_nobody_knows_is_left_out() -> None:
    assert expectation.kept({"profile": "bake"}).profile == "run"
    assert expectation.kept({"profile": ["build"]}).profile == "run"


def test_without_the_profile_nothing_is_looked_for(tmp_path: Path) -> None:
    request = collect.Request(sys.executable, str(tmp_path), import_torch=False, verify="none")
    snapshot = collect.collect(request, os.environ)
    assert not [name for name in snapshot.probes if name.startswith("build")]
    assert "build" not in snapshot.probes["environment"].data
    facts = machine.read(snapshot, Expectation())
    assert facts.build_tools == Unknown("not looked for (--profile build does)")


def test_a_listing_tells_the_compiler_that_nvcc_would_call() -> None:
    facts = of_text(LISTING, "build")
    assert isinstance(facts.build_tools, BuildTools)
    assert facts.build_tools.cc == Compiler("gcc", "gcc", "gcc", "13.2.0")
    check = load("build_compiler")
    assert names(looked(check, facts).findings) == ["host-compiler-too-new"]
    assert looked(check, of_text(LISTING)).findings == ()
    fitting = of_text(LISTING.replace("13.2.0", "11.4.0"), "build")
    assert looked(check, fitting).status == "clear"


def test_the_command_line_judges_a_text_by_the_profile(tmp_path: Path) -> None:
    (tmp_path / "env.txt").write_text(LISTING)
    asked = Ran("check", "env.txt", "--profile", "build", "--format", "json", cwd=tmp_path)
    assert [f["name"] for f in json.loads(asked.out)["findings"]] == ["host-compiler-too-new"]


@pytest.mark.parametrize("said", ["Could not collect", "", "13", "gcc", "(GCC) 4.8.5 20150623"])
def test_what_stands_for_a_compiler_in_a_listing_is_read_or_left(said: str) -> None:
    facts = of_text(LISTING.replace("(Ubuntu 13.2.0-23ubuntu4) 13.2.0", said))
    known = isinstance(facts.build_tools, BuildTools)
    assert known is said.startswith("(GCC)")


def test_a_profile_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    assert "--profile" in Ran("check", "--profile", "bake", cwd=tmp_path).complaint
