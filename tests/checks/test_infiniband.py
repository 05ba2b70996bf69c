"""What is sent over InfiniBand, and does not arrive."""

from __future__ import annotations

from tests.checks import make
from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner
from torchdoctor.facts import Limits

LOST = "NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129"
GONE = "NCCL WARN NET/IB : Got completion with error 5, opcode 1, len 0, vendor err 249"
USED = "NCCL INFO NET/IB : Using [0]mlx5_0:1/{} ; OOB eth0:192.0.2.10<0>"
LOCKED = "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"


def test_on_roce_the_index_is_set(judge: Judge, cure: Planner) -> None:
    text = said(USED.format("RoCE"), LOST)
    outcome = judge(symptoms=text)
    assert names(outcome) == {"ib-roce-misconfig": "error"}
    assert "mlx5_0" in summaries(outcome)
    plan = cure(symptoms=text, variables={})
    assert first_command(plan) == "export NCCL_IB_GID_INDEX=3"
    assert plan.verdict == "healthy"


def test_on_infiniband_the_fabric_is_proven(cure: Planner) -> None:
    assert first_command(cure(symptoms=said(USED.format("IB"), LOST))) == "ibstat"


def test_completion_error_5_follows_from_another_rank(judge: Judge) -> None:
    assert judge(symptoms=said(USED.format("IB"), GONE)).status == "clear"


def test_an_adapter_that_is_used_is_nothing(judge: Judge) -> None:
    assert judge(symptoms=said(USED.format("RoCE"))).status == "clear"


def test_memory_that_may_not_be_locked_is_a_limit(judge: Judge, cure: Planner) -> None:
    limits = Limits(locked_memory=65536)
    outcome = judge(symptoms=said(LOCKED), limits=limits)
    assert names(outcome) == {"memlock-too-small": "error"}
    assert [e.value for e in outcome.findings[0].evidence][1] == "64 KiB"
    inside = cure(symptoms=said(LOCKED), limits=limits, container=make.DOCKER)
    assert "--ulimit memlock=-1" in first_command(inside)
    outside = cure(symptoms=said(LOCKED), limits=limits, container=None)
    assert outside.steps[0].step.needs == ("admin",)
    assert outside.verdict == inside.verdict == "healthy"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
