"""A message without a cause is said to be one, with what to collect."""

from __future__ import annotations

import pytest

from tests.checks.run import names, said, summaries
from tests.conftest import Judge
from torchdoctor.reading.traceback import symptoms
from torchdoctor.tables import symptoms as table

NCCL = "RuntimeError: NCCL Error 2: unhandled system error"
MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
FULL = "NCCL WARN Call to posix_fallocate failed : No space left on device"


@pytest.mark.parametrize(("text", "collects"), [(NCCL, "NCCL_DEBUG=WARN"), (MEMORY, "nvidia-smi")])
def test_it_is_a_note_with_what_to_look_at(judge: Judge, text: str, collects: str) -> None:
    outcome = judge(symptoms=said(text))
    assert names(outcome) == {"message-unexplained": "note"}
    assert collects in summaries(outcome)
    assert outcome.findings[0].steps == ()


def test_what_stands_beside_it_explains_nothing(judge: Judge) -> None:
    text = said("NCCL version 2.21.5+cuda12.4", NCCL, "ncclRemoteError: A call failed")
    assert names(judge(symptoms=text)) == {"message-unexplained": "note"}


def test_as_soon_as_something_tells_the_cause_it_is_quiet(judge: Judge) -> None:
    assert judge(symptoms=said(NCCL, FULL)).status == "clear"


def test_what_our_own_trial_printed_is_for_other_checks(judge: Judge) -> None:
    assert judge(symptoms=symptoms(MEMORY, "torch.cuda")).status == "clear"


def test_no_message_at_all_is_nothing(judge: Judge) -> None:
    assert judge(symptoms=()).status == "clear"
    assert judge().status == "unknown"


def test_what_is_to_be_collected_is_told_of_messages_that_exist() -> None:
    rows = {row["name"] for row in table.rows()}
    assert set(table.collect()) <= rows
