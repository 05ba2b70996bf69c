"""All that can be explained: the checks, the rules of lint, the verbs that find by themselves."""

from __future__ import annotations

from torchdoctor.lint import catalogue
from torchdoctor.registry import Check, all_checks
from torchdoctor.shards import verdict


def known() -> dict[str, Check]:
    """Return everything that has documentation, by name."""
    return {**all_checks(), **catalogue.as_checks(), "shards": verdict.as_check()}
