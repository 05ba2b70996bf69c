"""A sampler, and what excludes it."""

from __future__ import annotations

from tests.checks.run import names, said
from tests.conftest import Judge, Planner

SHUFFLE = "ValueError: sampler option is mutually exclusive with shuffle"
BATCH = (
    "ValueError: batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
    "and drop_last"
)
STREAM = (
    "ValueError: DataLoader with IterableDataset: expected unspecified sampler option, but got "
    "sampler=[0]"
)


def test_a_sampler_with_shuffle_is_an_error_and_the_cure_is_in_the_script(
    judge: Judge, cure: Planner
) -> None:
    assert names(judge(symptoms=said(SHUFFLE))) == {"sampler-and-shuffle": "error"}
    plan = cure(symptoms=said(SHUFFLE))
    assert "shuffle=(sampler is None)" in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_a_batch_sampler_is_told_to_stand_alone(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(BATCH))) == {"sampler-and-shuffle": "error"}
    assert "batch_sampler alone" in cure(symptoms=said(BATCH)).steps[0].step.title


def test_a_stream_with_a_sampler_is_another_fault(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(STREAM))
    assert names(outcome) == {"sampler-for-stream": "error"}
    assert "sampler" in outcome.findings[0].summary
    assert cure(symptoms=said(STREAM)).verdict == "healthy"


def test_a_sampler_alone_is_in_order(judge: Judge) -> None:
    assert judge(symptoms=said("DataLoader(ds, sampler=s, shuffle=False)")).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
