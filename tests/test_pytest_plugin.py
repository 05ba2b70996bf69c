"""pytest stops before the first test in a broken environment, and skips with a reason."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import environments
from tests.probes.test_import_trial import GPUS
from tests.test_packaging import PROJECT

ROOT = Path(__file__).parents[1]
PACKAGES = str(Path(pytest.__file__).parents[1])
POINT = "\n".join(
    f"{name} = {value}" for name, value in PROJECT["project"]["entry-points"]["pytest11"].items()
)
TESTS = """
import pytest

def test_plain():
    pass

@pytest.mark.requires_gpus(2)
def test_two_gpus():
    raise AssertionError("ran")

@pytest.mark.requires_gpus
def test_one_gpu():
    raise AssertionError("ran")

@pytest.mark.requires_nccl
def test_nccl():
    raise AssertionError("ran")
"""
TWO = (
    TESTS.replace('raise AssertionError("ran")', "pass")
    + """
@pytest.mark.requires_gpus(n=3)
def test_three_gpus():
    raise AssertionError("ran")
"""
)


NCCL = """
import sys
sys.modules["torch._C"] = types.SimpleNamespace(_nccl_version=None)
cuda.nccl = types.SimpleNamespace(version=lambda: (2, 29, 7))
"""


def session(
    folder: Path, python: Path | str, *words: str, tests: str = TESTS, path: Sequence[Path] = ()
) -> tuple[int, str]:
    """Run pytest in *folder* by *python*, with torchdoctor as if it was installed."""
    info = folder / "installed" / "torchdoctor-0.1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torchdoctor\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{POINT}\n", "utf-8")
    (folder / "test_it.py").write_text(tests, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    places = os.pathsep.join(map(str, [info.parent, *path, ROOT, PACKAGES]))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [python, "-m", "pytest", "-rs", "-p", "no:cacheprovider", *words, "test_it.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=kept | {"PYTHONPATH": places, "COLUMNS": "300"},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "words", [["--torchdoctor"], pytest.param(["-p", "torchdoctor"], marks=pytest.mark.lab)]
)
def test_a_broken_environment_stops_before_the_first_test(tmp_path: Path, words: list[str]) -> None:
    code, said = session(tmp_path, environments.bare(tmp_path / "env").python, *words)
    assert code == 1
    assert "torchdoctor: no test was run." in said
    assert "torch-not-installed" in said
    assert "pip install" in said
    assert "passed" not in said


def test_nothing_happens_to_who_does_not_ask(tmp_path: Path) -> None:
    python = environments.bare(tmp_path / "env").python
    code, said = session(tmp_path, python, tests="def test_plain(): pass")
    assert (code, "1 passed" in said) == (0, True)
    assert "torchdoctor:" not in said


@pytest.mark.lab
def test_without_torch_a_marked_test_is_skipped_with_the_reason(tmp_path: Path) -> None:
    code, said = session(tmp_path, environments.bare(tmp_path / "env").python, "--strict-markers")
    assert code == 0, said
    assert "1 passed, 3 skipped" in said
    assert "2 GPUs wanted: torch is in no folder" in said
    assert "NCCL wanted, which needs a GPU: torch is in no folder" in said


def test_a_wrong_number_of_gpus_is_the_fault_of_the_test(tmp_path: Path) -> None:
    tests = TESTS.replace("requires_gpus(2)", "requires_gpus('two')")
    code, said = session(tmp_path, sys.executable, "-k", "two", tests=tests)
    assert code == 1
    assert "requires_gpus('two'): give a number from 1 up" in said


def test_a_wrong_expectation_is_wrong_usage(tmp_path: Path) -> None:
    code, said = session(tmp_path, sys.executable, "--torchdoctor-expect", "cudda")
    assert code == 4
    assert "--torchdoctor-expect" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("nccl", [True, pytest.param(False, marks=pytest.mark.lab)])
def test_what_two_gpus_allow_is_run(tmp_path: Path, nccl: bool) -> None:  # noqa: FBT001
    environment = environments.bare(tmp_path / "env")
    more = NCCL if nccl else ""
    environment.write("torch/__init__.py", f"{GPUS}\nCOUNT, FAIL = 2, {{}}\n{more}\n")
    code, said = session(tmp_path, environment.python, tests=TWO)
    assert code == 0, said
    assert f"{4 if nccl else 3} passed, {1 if nccl else 2} skipped" in said
    assert "3 GPUs wanted: " in said
    assert ("NCCL wanted: torch 2.9.1+cu128 has none" in said) is not nccl


@pytest.mark.lab
@pytest.mark.sample
def test_a_healthy_cpu_build_runs_its_tests_and_says_why_others_do_not(tmp_path: Path) -> None:
    python = environments.copy(tmp_path / "env", whole=False).python
    code, said = session(tmp_path, python, "--torchdoctor", "-n", "2")
    assert code == 0, said
    assert "1 passed, 3 skipped" in said
    assert "2 GPUs wanted: " in said
    assert "NCCL wanted: torch 2." in said
    code, said = session(tmp_path, python, "--torchdoctor-expect", "cuda")
    assert code == 1
    assert "expectation-unmet" in said or "cpu-only-build" in said
    assert "passed" not in said
