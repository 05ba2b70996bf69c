"""Every check has its test, its row in the README, its documentation, and facts that exist."""

from __future__ import annotations

import re
import types
import typing
from pathlib import Path

import pytest

from torchdoctor.facts import Facts, Unknown
from torchdoctor.registry import Check, all_checks

ROOT = Path(__file__).parents[1]
CHECKS = all_checks()
FIELDS = typing.get_type_hints(Facts)
each = pytest.mark.parametrize("check", CHECKS.values(), ids=lambda c: c.name)


def members(hint: object) -> set[object]:
    """Return the members of a union; of anything else, itself alone."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return set(typing.get_args(hint)) if union else {hint}


@each
def test_a_check_is_whole(check: Check) -> None:
    first = check.explains.splitlines()[0]
    assert first.endswith("."), "the module docstring's first line is a sentence"
    assert len(check.explains.splitlines()) > 3, "the docstring explains to a stuck user"
    findings = ", ".join(f"`{name}`" for name in check.names)
    row = f"| `{check.name}` | {first} | {findings} |"
    assert row in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert (ROOT / f"tests/checks/test_{check.name.replace('-', '_')}.py").is_file()
    assert set(check.after) <= set(CHECKS)
    assert check.names
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in check.names)


@each
def test_a_check_asks_for_facts_that_exist_by_their_type(check: Check) -> None:
    for name, hint in typing.get_type_hints(check.run).items():
        if name == "facts":
            assert hint is Facts
        elif name != "return":
            asked, offered = members(hint), members(FIELDS[name])
            assert asked <= offered, name
            assert offered - asked <= {Unknown}, f"{name} may be {offered - asked}, too"


def test_the_readme_has_a_row_for_nothing_else() -> None:
    rows = re.findall(
        r"^\| `([a-z0-9-]+)` \| .* \| `", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted(CHECKS)
