"""What is told of a run beside the findings: what it ran on, and how it went once more."""

from __future__ import annotations

from dataclasses import replace

from tests.all_reduce import make
from tests.all_reduce.make import chose, event, run, until
from torchdoctor.child import Run
from torchdoctor.commands import all_reduce_report
from torchdoctor.facts import AllReduce, Facts, RankEvent
from torchdoctor.snapshot import Snapshot


def rows(found: AllReduce, heading: str) -> list[str]:
    snapshot = Snapshot("", {"all-reduce": Run((), "answered", data={"world": found.world})})
    _, details = all_reduce_report.told(Facts(all_reduce=found), snapshot)
    return [detail.text for detail in details if detail.heading == heading]


def on_gpu(number: int, gpu: str = "NVIDIA H100") -> tuple[RankEvent, ...]:
    return (
        event("import", "fact", torch="2.9.1+cu128", cuda="12.8"),
        event("device", "fact", gpu=gpu, backend="nccl", device=f"cuda:{number}"),
        event("facts", "fact", nccl="22705", driver="570.86.15", interface="the first, eth0"),
        event("p2p", "fact", access={str(1 - number): True}),
        *until("done"),
    )


def test_versions_and_gpus_are_told_once_and_by_rank_where_they_differ() -> None:
    told = rows(run(on_gpu(0), on_gpu(1, "NVIDIA A100")), "What it ran on")
    assert told == [
        "torch         2.9.1+cu128",
        "CUDA          12.8",
        "NCCL          2.27.5",
        "driver        570.86.15",
        "GPU           NVIDIA H100 (rank 0); NVIDIA A100 (rank 1)",
        "interface     the first, eth0",
        "peer access   {'1': True} (rank 0); {'0': True} (rank 1)",
    ]


def test_of_what_no_rank_told_there_is_no_row() -> None:
    assert rows(run(until("import", "call"), ()), "What it ran on") == []


def test_each_change_with_which_it_was_tried_again_is_told_with_what_came_of_it() -> None:
    stuck = run(*(chose("nccl", until("all-reduce", "call")) for _ in range(2)))
    again = {"gloo": make.healthy("gloo"), "NCCL_P2P_DISABLE=1": stuck}
    assert [row.split() for row in rows(replace(stuck, again=again), "Tried again")] == [
        ["gloo", "works"],
        ["NCCL_P2P_DISABLE=1", "stuck", "in", "all-reduce"],
    ]
