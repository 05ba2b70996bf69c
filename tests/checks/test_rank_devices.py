"""Which rank has which GPU."""

from __future__ import annotations

from tests.checks import make
from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner

TWICE = "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000"
RENAMED = "NCCL WARN Multiple Ranks are using the same GPU/Partition."
ORDINAL = "RuntimeError: CUDA error: invalid device ordinal"
LAUNCH = "torchrun --nproc_per_node=4 train.py"
FAILED = "failed (exitcode: 1) local_rank: 2 (pid: 903)"
TWO = (make.a100(), make.a100(1))


def test_two_ranks_on_one_gpu_need_set_device(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(TWICE))
    assert names(outcome) == {"duplicate-gpu": "error"}
    assert "Rank 1 and rank 0" in summaries(outcome)
    plan = cure(symptoms=said(TWICE))
    assert "set_device" in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_the_wording_of_newer_nccl_is_the_same_fault(judge: Judge) -> None:
    assert names(judge(symptoms=said(RENAMED))) == {"duplicate-gpu": "error"}


def test_more_processes_than_gpus_is_certain_where_both_are_known(
    judge: Judge, cure: Planner
) -> None:
    outcome = judge(symptoms=said(LAUNCH, ORDINAL), gpus=TWO)
    assert names(outcome) == {"nproc-exceeds-gpus": "error"}
    assert "4 processes a node for 2 GPU" in summaries(outcome)
    assert outcome.findings[0].confidence == "certain"
    plan = cure(symptoms=said(LAUNCH, ORDINAL), gpus=TWO)
    assert first_command(plan) == "nvidia-smi -L"
    assert plan.verdict == "healthy"


def test_the_variables_count_for_both_sides(judge: Judge) -> None:
    variables = {"NPROC_PER_NODE": "4", "CUDA_VISIBLE_DEVICES": "0,1"}
    outcome = judge(symptoms=said(ORDINAL), gpus=(), variables=variables)
    assert names(outcome) == {"nproc-exceeds-gpus": "error"}


def test_a_rank_that_finds_no_device_is_likely_to_be_one_too_many(judge: Judge) -> None:
    outcome = judge(symptoms=said(LAUNCH, ORDINAL, FAILED))
    assert names(outcome) == {"nproc-exceeds-gpus": "error"}
    assert outcome.findings[0].confidence == "likely"


def test_a_rank_says_by_its_number_that_there_are_too_many(judge: Judge) -> None:
    outcome = judge(symptoms=said(f"[rank4]: {ORDINAL}"), gpus=TWO)
    assert names(outcome) == {"nproc-exceeds-gpus": "error"}
    assert "rank 4" in summaries(outcome)
    assert judge(symptoms=said(f"[rank1]: {ORDINAL}"), gpus=TWO).status == "clear"
    assert judge(symptoms=said(f"[rank0]: {ORDINAL}")).status == "clear"


def test_slurm_that_shows_each_task_one_gpu_is_told_so(judge: Judge, cure: Planner) -> None:
    text = said("#SBATCH --gpus-per-task=1", ORDINAL)
    assert names(judge(symptoms=text)) == {"slurm-gpu-binding": "error"}
    plan = cure(symptoms=text)
    assert "--gpus-per-node" in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_as_many_processes_as_gpus_one_process_and_a_quiet_launch_are_nothing(
    judge: Judge,
) -> None:
    assert judge(symptoms=said(LAUNCH, ORDINAL), gpus=TWO * 2).status == "clear"
    assert judge(symptoms=said(ORDINAL)).status == "clear"
    assert judge(symptoms=said(LAUNCH, "#SBATCH --gpus-per-task=1"), gpus=TWO).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
