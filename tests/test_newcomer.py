"""A newcomer's check takes one module, one test and one row of the README; nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CHECK = '''"""No proxy variable keeps rank 0 from being reached.

How it shows: the first collective waits until its timeout.

Why: gloo and the rendezvous do not use proxies, but libraries beside them do.
"""

from collections.abc import Iterator, Mapping

from torchdoctor import steps
from torchdoctor.model import Evidence, Finding

FAMILY = "system"
FINDS = ("proxy-in-the-way",)


def check(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Look for the proxy variable."""
    if value := variables.get("NCCL_PROXY"):
        yield Finding(
            "proxy-in-the-way",
            "warning",
            f"NCCL_PROXY={value} is set, which nothing reads.",
            (Evidence("variables.NCCL_PROXY", value, "environment"),),
            (steps.unset_variable("NCCL_PROXY", why="Nothing reads it."),),
        )
'''
TEST = """from tests.conftest import Judge, Planner


def test_a_proxy_is_found_and_the_plan_cures_it(judge: Judge, cure: Planner) -> None:
    (finding,) = judge(variables={"NCCL_PROXY": "x"}).findings
    assert finding.name == "proxy-in-the-way"
    assert cure(variables={"NCCL_PROXY": "x"}).verdict == "healthy"


def test_no_proxy_is_clear(judge: Judge) -> None:
    assert judge(variables={"NCCL_DEBUG": "INFO"}).status == "clear"
"""
ROW = "| `proxy` | No proxy variable keeps rank 0 from being reached. | `proxy-in-the-way` |\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy what a newcomer has cloned."""
    copy = tmp_path / "clone"
    for folder in ("torchdoctor", "checks", "windows"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "tests" / "checks").mkdir(parents=True)
    for file in ("conftest.py", "__init__.py", "test_checks_are_whole.py", "test_layers.py"):
        shutil.copy(ROOT / "tests" / file, copy / "tests")
    for path in (ROOT / "tests" / "checks").glob("*.py"):
        shutil.copy(path, copy / "tests" / "checks")
    for file in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / file, copy)
    return copy


def verdict(checkout: Path) -> tuple[int, str]:
    """Run the tests that hold a check together, in the copy."""
    files = ["tests/test_checks_are_whole.py", "tests/test_layers.py"]
    if (checkout / "tests" / "checks" / "test_proxy.py").exists():
        files.append("tests/checks/test_proxy.py")
    environ = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTEST_ADDOPTS"}}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        cwd=checkout,
        env=environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.lab
@pytest.mark.sample
def test_one_module_one_test_one_row_are_enough_and_each_is_needed(checkout: Path) -> None:
    parts = {"checks/proxy.py": CHECK, "tests/checks/test_proxy.py": TEST}
    for path, text in parts.items():
        (checkout / path).write_text(text)
    readme = checkout / "README.md"
    before = readme.read_text(encoding="utf-8")
    anchor = next(line for line in before.splitlines(keepends=True) if line.startswith("| `nvml`"))
    readme.write_text(before.replace(anchor, anchor + ROW), encoding="utf-8")
    code, said = verdict(checkout)
    assert code == 0, said
    # And the check is there for a user, without anything being registered.
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", "explain", "proxy-in-the-way"],
        cwd=checkout,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "first collective waits" in done.stdout
    # Without the row, or the test, it is not whole.
    readme.write_text(before, encoding="utf-8")
    assert verdict(checkout)[0] == 1
    readme.write_text(before.replace(anchor, anchor + ROW), encoding="utf-8")
    (checkout / "tests/checks/test_proxy.py").unlink()
    assert verdict(checkout)[0] == 1
