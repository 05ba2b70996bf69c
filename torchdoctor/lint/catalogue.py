"""The rules of lint as ``explain`` and ``list`` show them."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.lint.rule import FAMILIES, all_rules
from torchdoctor.model import Finding
from torchdoctor.registry import Check


def as_checks() -> dict[str, Check]:
    """Return the rules in the form in which checks are explained."""
    return {
        rule.name: Check(
            rule.name, rule.family, rule.explains, (), frozenset(), (), (rule.name,), _nothing
        )
        for rule in all_rules().values()
    }


def listing() -> str:
    """Return every rule by family, with the severity that it usually has."""
    rows: list[str] = []
    for family in FAMILIES:
        rows.append(f"{family} (torchdoctor lint)")
        rows += [
            f"  {rule.name} ({rule.severity}): {rule.title}"
            for rule in sorted(all_rules().values(), key=lambda rule: rule.name)
            if rule.family == family
        ]
        rows.append("")
    return "\n".join(rows)


def _nothing() -> Iterator[Finding]:
    return iter(())
