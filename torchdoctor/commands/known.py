"""All that can be explained: the checks, the rules of lint, the verbs that find by themselves."""

from __future__ import annotations

from torchdoctor.commands import install
from torchdoctor.hang import verdict as of_hangs
from torchdoctor.lint import catalogue
from torchdoctor.registry import Check, all_checks
from torchdoctor.shards import verdict
from torchdoctor.training import advice, proofs


def known() -> dict[str, Check]:
    """Return everything that has documentation, by name."""
    verbs = {check.name: check for check in (verdict.as_check(), of_hangs.as_check())}
    verbs["install"] = install.as_check()
    verbs |= {advice.NAME: advice.as_check(), **proofs.as_checks()}
    return {**all_checks(), **catalogue.as_checks(), **verbs}
