from __future__ import annotations

from dataclasses import replace

from tests.all_reduce import make
from tests.all_reduce.make import chose, error, run, until
from tests.conftest import Judge
from torchdoctor.facts import AllReduce


def stuck() -> AllReduce:
    return run(*(chose("nccl", until("all-reduce", "call")) for _ in range(2)))


def test_a_run_over_gloo_proves_nothing_of_nccl_and_says_what_it_has_proven(judge: Judge) -> None:
    outcome = judge(all_reduce=make.healthy("gloo"))
    assert outcome.status == "unknown"
    assert outcome.reason.startswith("NCCL was not tried; gloo on cpu carried it for 2 ranks")


def test_a_failed_run_over_gloo_leaves_nccl_unknown(judge: Judge) -> None:
    failed = run(chose("gloo", error("facts", "interface")), chose("gloo", until("facts", "call")))
    assert judge(all_reduce=failed).reason == "NCCL was not tried; the all_reduce over gloo failed"


def test_a_run_that_came_to_no_backend_leaves_nccl_unknown(judge: Judge) -> None:
    assert judge(all_reduce=run(error("import"))).status == "unknown"


def test_nccl_on_two_ranks_makes_it_clear(judge: Judge) -> None:
    assert judge(all_reduce=make.healthy("nccl")).status == "clear"


def test_nccl_on_one_gpu_says_nothing_of_what_is_between_gpus(judge: Judge) -> None:
    outcome = judge(all_reduce=make.healthy("nccl", world=1))
    assert (outcome.status, outcome.reason) == (
        "unknown",
        "NCCL works on one GPU; between GPUs nothing was tried",
    )


def test_two_ranks_on_one_gpu_are_told_beside_it(judge: Judge) -> None:
    again = {"NCCL_MULTI_RANK_GPU_ENABLE=1": make.healthy("nccl")}
    alone = replace(make.healthy("nccl", world=1), again=again)
    assert "two ranks on it meet" in judge(all_reduce=alone).reason


def test_the_first_transport_without_which_nccl_works_is_the_broken_one(judge: Judge) -> None:
    again = {
        "gloo": make.healthy("gloo"),
        "NCCL_P2P_DISABLE=1": stuck(),
        "NCCL_SHM_DISABLE=1": make.healthy("nccl"),
    }
    (finding,) = judge(all_reduce=replace(stuck(), again=again)).findings
    assert finding.name == "nccl-transport-broken"
    assert "NCCL_SHM_DISABLE=1" in finding.summary
    assert "shared memory" in finding.summary


def test_where_nothing_helps_it_stays_unknown_which_transport_it_is(judge: Judge) -> None:
    again = {"NCCL_P2P_DISABLE=1": stuck(), "gloo": make.healthy("gloo")}
    outcome = judge(all_reduce=replace(stuck(), again=again))
    assert outcome.status == "unknown"
    assert "with NCCL_P2P_DISABLE=1; gloo works" in outcome.reason


def test_where_gloo_fails_beside_it_it_is_not_said_to_be_nccl_s_own(judge: Judge) -> None:
    again = {"gloo": stuck(), "NCCL_P2P_DISABLE=1": stuck()}
    outcome = judge(all_reduce=replace(stuck(), again=again))
    assert outcome.reason.endswith("fails as well: what is wrong is not NCCL's own")


def test_without_a_run_there_is_nothing_to_say(judge: Judge) -> None:
    assert judge(all_reduce=None).status == "clear"
