"""What the ranks call, how often, and when."""

from __future__ import annotations

from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner

WAITS = (
    "[rank{0}]:[E] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={1}, OpType={2}, NumelIn={3}, NumelOut=1, Timeout(ms)=600000) ran for 600001"
)
MISMATCH = "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running"
BUSY = "Preparing test set:  36%|###5     | 24/67 [23:16<30:00, 41.87s/it]"
EPOCH = "Epoch 0:  96%|#########6| 4260/4435 [1:12:33<02:58,  1.02s/it]"


def test_a_mismatch_is_certain_and_the_two_are_named_by_a_run(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(MISMATCH))
    assert names(outcome) == {"collective-mismatch": "error"}
    assert outcome.findings[0].confidence == "certain"
    plan = cure(symptoms=said(MISMATCH))
    assert first_command(plan).startswith("TORCH_DISTRIBUTED_DEBUG=DETAIL")
    assert plan.verdict == "healthy"


def test_two_ranks_in_different_collectives_of_one_number_are_a_mismatch(judge: Judge) -> None:
    text = said(WAITS.format(0, 7, "ALLREDUCE", 100), WAITS.format(1, 7, "BROADCAST", 1))
    assert names(judge(symptoms=text)) == {"collective-mismatch": "error"}


def test_a_message_that_is_cut_is_a_likely_mismatch_unless_versions_differ(judge: Judge) -> None:
    cut = "NCCL WARN Message truncated : received 1024 bytes instead of 256"
    assert names(judge(symptoms=said(cut))) == {"collective-mismatch": "error"}
    versions = ("NCCL version 2.21.5+cuda12.4", "NCCL version 2.20.5+cuda12.4")
    assert judge(symptoms=said(cut, *versions)).status == "clear"


def test_ranks_with_different_numbers_of_batches(judge: Judge, cure: Planner) -> None:
    text = said("rank 0: len(dataloader)=4435", "rank 1: len(dataloader)=4260", EPOCH)
    outcome = judge(symptoms=text)
    assert names(outcome) == {"uneven-steps-hang": "error"}
    assert "rank 0 has 4435, rank 1 has 4260" in summaries(outcome)
    assert cure(symptoms=text).verdict == "healthy"
    same = said("rank 0: len(dataloader)=4435", "rank 1: len(dataloader)=4435")
    assert judge(symptoms=same).status == "clear"


def test_ranks_that_wait_in_collectives_of_different_numbers_are_out_of_step(
    judge: Judge, cure: Planner
) -> None:
    text = said(WAITS.format(0, 96117, "ALLREDUCE", 1), WAITS.format(7, 64088, "ALLREDUCE", 1))
    outcome = judge(symptoms=text)
    assert names(outcome) == {"uneven-steps-hang": "error", "collective-mismatch": "warning"}
    assert "Rank 7 waits in collective 64088 and rank 0 in 96117" in summaries(outcome)
    plan = cure(symptoms=text)
    assert len(plan.steps) == 1
    assert plan.verdict == "healthy"


def test_a_rank_that_is_busy_is_waited_for_in_vain(judge: Judge, cure: Planner) -> None:
    text = said(BUSY, WAITS.format(1, 3, "ALLREDUCE", 1))
    outcome = judge(symptoms=text)
    assert names(outcome) == {"slow-rank-timeout": "error"}
    assert "Preparing test set (24 of 67)" in summaries(outcome)
    assert "10 minutes" in summaries(outcome)
    assert outcome.findings[0].confidence == "likely"
    assert cure(symptoms=text).verdict == "healthy"


def test_the_bar_of_an_epoch_is_no_other_work(judge: Judge) -> None:
    outcome = judge(symptoms=said(EPOCH, WAITS.format(1, 3, "ALLREDUCE", 1)))
    assert outcome.findings[0].confidence == "possible"


def test_a_rank_that_never_came_is_named(judge: Judge) -> None:
    text = "RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 2000 ms"
    assert "Rank 2 did not come" in summaries(judge(symptoms=said(text)))


def test_a_time_out_alone_is_a_short_list_with_what_decides(judge: Judge, cure: Planner) -> None:
    text = said(WAITS.format(1, 3, "ALLREDUCE", 1))
    assert names(judge(symptoms=text)) == {
        "slow-rank-timeout": "error",
        "uneven-steps-hang": "warning",
    }
    other = judge(symptoms=text).findings[1]
    assert other.because_of == ("slow-rank-timeout",)  # one story, told by its likelier half
    plan = cure(symptoms=text)
    assert first_command(plan).startswith("TORCH_DISTRIBUTED_DEBUG=DETAIL")
    assert (len(plan.steps), plan.verdict) == (1, "healthy")


def test_what_explains_a_time_out_is_not_told_here(judge: Judge) -> None:
    waits = WAITS.format(1, 3, "ALLREDUCE", 1)
    for cause in (
        "[rank0]: ValueError: bad value",
        "NCCL WARN Call to posix_fallocate failed : No space left on device",
        "it works with NCCL_P2P_DISABLE=1",
    ):
        assert judge(symptoms=said(waits, cause)).status == "clear", cause


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
