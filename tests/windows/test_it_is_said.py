"""That no Windows was at hand is said where a user reads: the README, and what explain prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.windows.test_wine_translation import MISSED, PREDICTED
from tests.windows.wine import cases, kept
from torchdoctor.registry import all_checks

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
CHECKS = {n: c.explains for n, c in all_checks().items() if c.explains.startswith("On Windows,")}


@pytest.mark.parametrize("name", CHECKS)
def test_explain_says_that_windows_was_not_at_hand(name: str) -> None:
    words = " ".join(CHECKS[name].split())
    assert "Windows itself was not at hand" in words


def test_there_are_such_checks() -> None:
    assert len(CHECKS) >= 15


def test_the_readme_says_so_with_the_figures_of_the_tests() -> None:
    words = " ".join(README.split())
    assert "**Windows itself was not available here.**" in words
    assert f"`import torch` in {len(cases.all_of_them())} cases" in words
    rows = cases.table("cases")["matrix"]
    assert f"({len(rows['torch'])} releases x {len(rows['runtime'])} runtimes;" in words
    plain = [name for name, said in PREDICTED.items() if not said["translated"]]
    others = len(kept.blind()) - len(plain)
    assert f"{len(kept.blind())} more cases were predicted before they were run" in words
    assert f"all {len(plain)} that need no translation" in words
    assert f"{others - len(MISSED)} of the {others} others. The {len(MISSED)} misses" in words
