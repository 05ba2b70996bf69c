"""Keys with the prefix of a wrapper, and keys that differ in more."""

from __future__ import annotations

import pytest

from tests.checks.run import names, said, summaries
from tests.conftest import Judge, Planner

MISSING = 'Missing key(s) in state_dict: "{}".'
UNEXPECTED = 'Unexpected key(s) in state_dict: "{}".'


def keys(missing: str = "", unexpected: str = "") -> str:
    lines = [MISSING.format(missing)] if missing else []
    return "\n\t".join([*lines, *([UNEXPECTED.format(unexpected)] if unexpected else [])])


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod."])
def test_a_checkpoint_of_a_wrapper_in_a_bare_model(
    judge: Judge, cure: Planner, prefix: str
) -> None:
    text = said(keys("fc.weight", f"{prefix}fc.weight"))
    outcome = judge(symptoms=text)
    assert names(outcome) == {"module-prefix-keys": "error"}
    assert outcome.findings[0].confidence == "certain"
    assert f"{prefix}fc.weight" in summaries(outcome)
    plan = cure(symptoms=text)
    assert f"consume_prefix_in_state_dict_if_present(state, {prefix!r})" in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_a_bare_checkpoint_in_a_wrapper_is_the_reverse(judge: Judge, cure: Planner) -> None:
    text = said(keys("module.fc.weight", "fc.weight"))
    assert names(judge(symptoms=text)) == {"module-prefix-keys": "error"}
    assert cure(symptoms=text).steps[0].step.name == "load-before-wrapping"


def test_half_a_message_is_possible_and_no_more(judge: Judge) -> None:
    outcome = judge(symptoms=said(keys(unexpected="module.fc.weight")))
    assert outcome.findings[0].confidence == "possible"


@pytest.mark.parametrize(
    ("missing", "unexpected"),
    [
        ("encoder.weight", "module.decoder.weight"),
        ("module.fc.weight", "module.head.weight"),
        ("fc.weight", "head.weight"),
        ("fc.weight", ""),
    ],
)
def test_keys_that_differ_in_more_than_a_prefix_are_another_model(
    judge: Judge, missing: str, unexpected: str
) -> None:
    assert judge(symptoms=said(keys(missing, unexpected))).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
