"""Who is behind, in what, and what the others wait for: by what was recorded and seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.hang import make
from torchdoctor.hang import blame, flight_recorder, verdict
from torchdoctor.hang.records import (
    Beat,
    Communicator,
    Dump,
    Frame,
    Job,
    Kernel,
    Rank,
    Ras,
    RasRank,
    Status,
)
from torchdoctor.model import Finding

STILL = Kernel("S", "futex_do_wait", 202, 2.0)
SLEEPS = Kernel("S", "hrtimer_nanosleep", 230, 2.0)
BUSY = Kernel("R", "", None, 2.0, 1.5, 40)
STOPPED = Kernel("T", "do_signal_stop", None, 2.0)
C10D = "/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"
IN_ALL_REDUCE = (
    Frame("all_reduce", C10D, 3252),
    Frame("wrapper", "/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py", 83),
    Frame("train", "/job/train.py", 40),
)
IN_BARRIER = (
    Frame("all_reduce", C10D, 3252),
    Frame("barrier", C10D, 5000),
    Frame("validate", "/job/train.py", 70),
)
ELSEWHERE = (Frame("read", "/job/data.py", 9), Frame("train", "/job/train.py", 38))
WAITS: dict[str, Any] = {"state": "started"}


def waiting(rank: int, number: int, **more: Any) -> Dump:
    """Return a dump whose last call, *number*, is not done."""
    return make.dump(rank, *make.agreed(number - 1), make.call(number, **{**WAITS, **more}))


def said(job: Job) -> tuple[blame.Verdict, Finding]:
    found = blame.blame(job)
    finding = verdict.finding(found, job)
    assert finding is not None, found
    assert "?" not in finding.summary
    assert finding.name in verdict.FINDS
    return found, finding


def live(*ranks: Rank, world: int | None = None, **more: Any) -> Job:
    many = len(ranks) if world is None else world
    return Job(ranks, many, 2.0, make.CREATED / 1e9 + 100, live=True, **more)


# ---- by the Flight Recorder ---------------------------------------------------------------------


def test_the_rank_with_the_smaller_number_is_behind() -> None:
    dumps = [waiting(r, 4, size=(5, 7), kind="Double") for r in (0, 2)]
    found, finding = said(make.job(*dumps, make.dump(1, *make.agreed(3)), world=3))
    assert (found.cause, found.ranks, found.waiting) == ("late", (1,), (0, 2))
    assert finding.name == "rank-stuck"
    assert finding.where == {"rank": 1, "collective": 4, "operation": "all_reduce", "group": "0"}
    assert "all_reduce of Double [5, 7], collective 4 of the default group" in finding.summary
    assert "ranks 0 and 2 wait there" in finding.summary


def test_several_ranks_may_be_behind() -> None:
    behind = [make.dump(rank, *make.agreed(3)) for rank in (1, 2)]
    found, finding = said(make.job(waiting(0, 4), *behind, world=3))
    assert found.ranks == (1, 2)
    assert finding.summary.startswith("Ranks 1 and 2 have not come to all_reduce")
    assert finding.where is not None
    assert finding.where["ranks"] == "1,2"


def test_where_all_calls_are_done_nothing_hangs() -> None:
    job = make.job(make.dump(0, *make.agreed(3)), make.dump(1, *make.agreed(3)))
    assert blame.blame(job).cause == "none"
    assert verdict.finding(blame.blame(job), job) is None


def test_a_rank_that_is_ahead_of_others_in_what_is_done_is_no_hang_while_it_runs() -> None:
    ranks = (
        Rank(0, alive=True, kernel=BUSY, dump=make.dump(0, *make.agreed(5))),
        Rank(1, alive=True, kernel=BUSY, dump=make.dump(1, *make.agreed(4))),
    )
    assert blame.blame(live(*ranks)).cause == "none"


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"operation": "broadcast"}, "operation"),
        ({"kind": "Half"}, "type"),
        ({"size": (6,)}, "size"),
    ],
)
def test_two_calls_under_one_number_do_not_fit(other: dict[str, Any], what: str) -> None:
    ahead = [waiting(rank, 4, size=(5,)) for rank in (0, 2)]
    odd = make.dump(1, *make.agreed(3), make.call(4, **({"size": (5,)} | other | WAITS)))
    found, finding = said(make.job(*ahead, odd, world=3))
    assert (found.cause, found.ranks, found.values["what"]) == ("mismatch", (1,), what)
    assert finding.name == "collective-mismatch"
    assert "rank 1 apart" in finding.summary
    assert "ranks 0 and 2: all_reduce of Float [5] at /job/train.py:41" in finding.summary


def test_of_two_ranks_that_do_not_fit_none_is_blamed() -> None:
    found, finding = said(make.job(waiting(0, 4), waiting(1, 4, size=(9,))))
    assert found.ranks == ()
    assert finding.where is not None
    assert finding.where["rank"] == "none"
    assert "rank 0: all_reduce of Float [3]" in finding.summary
    assert "rank 1: all_reduce of Float [9]" in finding.summary


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"size": (2, 3)}, {"size": (6,)}),
        ({"operation": "_all_gather_base"}, {"operation": "all_gather"}),
        ({"operation": "all_to_all_single", "size": (2,)}, {"operation": "all_to_all_single"}),
        ({"operation": "all_gather_v", "size": (2,)}, {"operation": "all_gather_v", "size": (4,)}),
        ({"operation": "barrier", "kind": "Float"}, {"operation": "barrier", "kind": "Byte"}),
    ],
)
def test_what_fits_together_is_no_mismatch(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = blame.blame(make.job(waiting(0, 4, **one), waiting(1, 4, **other)))
    assert found.cause == "stuck"


def test_a_mismatch_that_was_passed_is_none_while_the_job_runs() -> None:
    ranks = [
        Rank(
            r, alive=True, kernel=BUSY, dump=make.dump(r, make.call(1, size=(r + 1,)), make.call(2))
        )
        for r in (0, 1)
    ]
    assert blame.blame(live(*ranks)).cause == "none"


def test_all_in_one_call_and_none_behind_is_the_network() -> None:
    found, finding = said(make.job(waiting(0, 4), waiting(1, 4)))
    assert (found.cause, found.ranks, found.waiting) == ("stuck", (), (0, 1))
    assert finding.name == "collective-stuck"


def test_a_gpu_that_has_not_begun_what_the_others_have_is_held() -> None:
    found, finding = said(make.job(waiting(0, 4), waiting(1, 4, state="scheduled")))
    assert (found.cause, found.ranks) == ("not-started", (1,))
    assert "Rank 1 has called" in finding.summary


def test_what_ended_on_all_but_one_is_between_them() -> None:
    found, finding = said(make.job(make.dump(0, *make.agreed(4)), waiting(1, 4)))
    assert (found.cause, found.ranks, finding.name) == ("not-completed", (1,), "collective-stuck")


def test_a_rank_without_a_dump_may_be_the_one() -> None:
    found, finding = said(make.job(waiting(0, 4), waiting(2, 4), world=3))
    assert (found.cause, found.ranks, finding.confidence) == ("no-dump", (1,), "likely")
    assert "Nothing was heard of rank 1" in finding.summary


def test_the_ranks_of_a_group_are_those_that_the_dump_names() -> None:
    groups = {"0": (0, 1, 2, 3), "5": (2, 3)}
    ranks = []
    for rank in range(4):
        entries = make.agreed(2)
        if rank == 3:
            entries.append(make.call(1, group="5", description="pipeline", **WAITS))
        ranks.append(make.dump(rank, *entries, groups=groups))
    found, finding = said(make.job(*ranks, world=4))
    assert (found.ranks, found.waiting, found.group) == ((2,), (3,), "5")
    assert "collective 1 of group 5 (pipeline)" in finding.summary


def test_the_one_that_waits_for_nobody_is_behind_and_not_the_one_in_between() -> None:
    groups = {"0": (0, 1, 2), "7": (0, 1)}
    first = make.dump(0, *make.agreed(2), make.call(1, group="7", **WAITS), groups=groups)
    middle = make.dump(1, *make.agreed(2), groups=groups)
    last = make.dump(2, *make.agreed(2), make.call(3, **WAITS), groups=groups)
    found, _ = said(make.job(first, middle, last, world=3))
    assert found.ranks == (1,)


def test_ranks_that_wait_for_each_other_are_a_circle() -> None:
    groups = {"1": (0, 1), "2": (0, 1)}
    one = make.dump(0, make.call(1, group="1", **WAITS), groups=groups)
    other = make.dump(1, make.call(1, group="2", **WAITS), groups=groups)
    found, finding = said(make.job(one, other))
    assert (found.cause, found.ranks, finding.name) == ("order", (), "collective-mismatch")
    assert "rank 0: all_reduce of Float [3] in group 1" in finding.summary


@pytest.mark.parametrize(("first", "cause"), [(0, "late"), (40, "no-dump")])
def test_a_rank_whose_calls_may_have_been_overwritten_is_not_behind(first: int, cause: str) -> None:
    groups = {"0": (0, 1), "4": (0, 1)}
    ahead = make.dump(0, make.call(1), make.call(7, group="4", **WAITS), groups=groups)
    whole = make.raw([make.call(1) | {"record_id": first}], groups=groups)
    other = flight_recorder.dump(whole, 1)
    assert blame.blame(make.job(ahead, other)).cause == cause


def test_a_receive_waits_for_whoever_has_not_sent() -> None:
    pending = make.call(1, "recv 0<-1", p2p=True, **WAITS)
    found, finding = said(make.job(make.dump(0, pending), make.dump(1, make.call(1))))
    assert (found.cause, found.ranks, found.waiting) == ("late", (1,), (0,))
    assert "recv 0<-1" in finding.summary


def test_a_receive_whose_send_was_called_waits_for_nobody() -> None:
    pending = make.call(1, "recv 0<-1", p2p=True, **WAITS)
    sent = make.call(1, "send 1->0", p2p=True, **WAITS)
    assert blame.blame(make.job(make.dump(0, pending), make.dump(1, sent))).cause == "stuck"


def test_two_that_both_receive_first_are_a_circle() -> None:
    one = make.dump(0, make.call(1, "recv 0<-1", p2p=True, **WAITS))
    other = make.dump(1, make.call(1, "recv 1<-0", p2p=True, **WAITS))
    assert blame.blame(make.job(one, other)).cause == "order"


def test_gloo_does_not_tell_a_time_out_from_an_end_so_that_it_is_likely() -> None:
    ahead = make.dump(0, *make.agreed(4, backend="gloo", state="scheduled", retired=True))
    behind = make.dump(1, *make.agreed(3, backend="gloo", state="scheduled", retired=True))
    found, finding = said(make.job(ahead, behind))
    assert (found.cause, found.ranks, finding.confidence) == ("fewer", (1,), "likely")
    assert finding.summary.startswith("Rank 1 never called all_reduce of Float [3], collective 4")


# ---- looked at twice ----------------------------------------------------------------------------


def seen(rank: int, kernel: Kernel, dump: Dump, earlier: Dump | None = None, **more: Any) -> Rank:
    return Rank(
        rank, 100 + rank, alive=True, kernel=kernel, dump=dump, earlier=earlier or dump, **more
    )


def test_a_rank_at_work_is_slow_and_not_hung() -> None:
    job = live(seen(0, STILL, waiting(0, 4)), seen(1, BUSY, make.dump(1, *make.agreed(3))))
    found, finding = said(job)
    assert (found.cause, finding.name, finding.severity) == ("slow", "slow-rank-timeout", "note")
    assert finding.summary.startswith("No hang so far: rank 1 is at work")
    assert finding.steps == ()
    assert "rank 0 waits there for 96 s so far" in finding.summary


def test_a_slow_rank_becomes_a_warning_when_half_of_the_time_out_is_over() -> None:
    job = live(
        seen(0, STILL, waiting(0, 4, timeout=150_000)),
        seen(1, BUSY, make.dump(1, *make.agreed(3))),
    )
    assert said(job)[1].severity == "warning"


def test_a_rank_that_does_not_move_is_stuck_where_its_stack_says() -> None:
    behind = seen(1, SLEEPS, make.dump(1, *make.agreed(3)), stack=ELSEWHERE)
    found, finding = said(live(seen(0, STILL, waiting(0, 4)), behind))
    assert (found.cause, finding.severity, finding.confidence) == ("late", "error", "certain")
    assert "rank 1 is at /job/data.py:9, in read" in finding.summary
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == ("/job/data.py", 9)


def test_as_long_as_the_others_have_not_waited_long_it_is_only_likely() -> None:
    ranks = (
        seen(0, STILL, waiting(0, 4)),
        seen(1, SLEEPS, make.dump(1, *make.agreed(3)), stack=ELSEWHERE),
    )
    job = replace(live(*ranks), looked_at=make.CREATED / 1e9 + 4 + 20)
    assert said(job)[1].confidence == "likely"


def test_a_job_whose_numbers_grow_is_no_hang() -> None:
    ranks = [
        seen(0, STILL, waiting(0, 9), waiting(0, 5)),
        seen(1, SLEEPS, make.dump(1, *make.agreed(8)), make.dump(1, *make.agreed(4))),
    ]
    assert blame.blame(live(*ranks)).cause == "none"


def test_a_stopped_rank_is_to_blame_whatever_else_is_seen() -> None:
    job = live(seen(0, STILL, waiting(0, 4)), seen(1, STOPPED, make.dump(1, *make.agreed(3))))
    found, finding = said(job)
    assert (found.cause, found.ranks, finding.name) == ("stopped", (1,), "rank-stopped")
    assert finding.steps[0].commands.bash == ("kill -CONT 101",)
    assert "rank 0 waits in all_reduce of Float [3], collective 4" in finding.summary


@pytest.mark.parametrize(
    ("beat", "name"),
    [
        (None, "rank-died"),
        (Beat(1), "rank-died"),
        (Beat(1, ended=True), "uneven-steps-hang"),
        (Beat(1, ended=True, raised="KeyError"), "rank-raised"),
    ],
)
def test_a_rank_that_is_gone_is_to_blame_by_how_it_went(beat: Beat | None, name: str) -> None:
    job = live(seen(0, STILL, waiting(0, 4)), Rank(1, alive=False, beat=beat))
    found, finding = said(job)
    assert (finding.name, found.ranks) == (name, (1,))


def gone(rank: int, **more: Any) -> Rank:
    return Rank(rank, alive=False, beat=Beat(rank, 2, **more))


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (gone(1), "rank-died"),
        (gone(1, ended=True), "uneven-steps-hang"),
        (gone(1, ended=True, raised="KeyError"), "rank-raised"),
    ],
)
def test_an_exception_about_another_rank_is_not_the_cause(first: Rank, name: str) -> None:
    echo = gone(0, ended=True, raised="DistBackendError")
    found, finding = said(Job((echo, first), 2))
    assert (finding.name, found.ranks) == (name, (1,))


def test_where_only_such_an_exception_is_known_it_is_what_is_said() -> None:
    echo = gone(0, ended=True, raised="RuntimeError")
    found, _ = said(Job((echo, Rank(1, beat=Beat(1, 2))), 2))
    assert (found.cause, found.ranks) == ("raised", (0,))


def test_where_all_have_ended_nothing_hangs() -> None:
    job = Job(tuple(Rank(r, alive=False, beat=Beat(r, 2, ended=True)) for r in (0, 1)), 2)
    assert blame.blame(job).cause == "ended"


# ---- by stacks, the kernel, heartbeats, NCCL ----------------------------------------------------


def stacked(rank: int, stack: tuple[Frame, ...], kernel: Kernel = STILL) -> Rank:
    return Rank(rank, 100 + rank, alive=True, kernel=kernel, stack=stack, stack_from="py-spy")


def test_the_rank_that_is_elsewhere_is_behind() -> None:
    found, finding = said(live(stacked(0, IN_ALL_REDUCE), stacked(1, ELSEWHERE, SLEEPS)))
    assert (found.ranks, found.waiting, found.operation) == ((1,), (0,), "all_reduce")
    assert finding.confidence == "likely"
    assert "has not come to all_reduce: rank 1 is at /job/data.py:9" in finding.summary


def test_by_stacks_too_a_rank_at_work_is_only_slow() -> None:
    found, _ = said(live(stacked(0, IN_ALL_REDUCE), stacked(1, ELSEWHERE, BUSY)))
    assert (found.cause, found.ranks) == ("slow", (1,))


def test_stacks_in_two_collectives_are_a_mismatch() -> None:
    ranks = [stacked(0, IN_ALL_REDUCE), stacked(1, IN_BARRIER), stacked(2, IN_ALL_REDUCE)]
    found, finding = said(live(*ranks))
    assert (found.cause, found.ranks) == ("mismatch", (1,))
    assert "rank 1: barrier at /job/train.py:70" in finding.summary


def test_a_stack_in_a_lock_of_its_own_code_may_wait_for_others() -> None:
    ranks = (stacked(0, IN_ALL_REDUCE), stacked(1, ELSEWHERE))
    assert blame.blame(live(*ranks)).cause == "unknown"


def test_a_job_of_which_a_stack_is_lacking_is_not_called_stuck() -> None:
    ranks = (stacked(0, IN_ALL_REDUCE), Rank(1, 101, alive=True, kernel=STILL))
    assert blame.blame(live(*ranks)).cause == "unknown"


def test_who_sleeps_while_the_others_stand_in_a_lock_is_possible() -> None:
    ranks = (Rank(0, 100, alive=True, kernel=STILL), Rank(1, 101, alive=True, kernel=SLEEPS))
    found, finding = said(live(*ranks))
    assert (found.ranks, finding.confidence) == ((1,), "possible")
    assert "rank 1 is in the kernel at hrtimer_nanosleep" in finding.summary


def test_ranks_that_keep_their_processors_busy_are_unknown_without_stacks() -> None:
    ranks = tuple(Rank(r, 100 + r, alive=True, kernel=BUSY) for r in (0, 1))
    assert blame.blame(live(*ranks)).cause == "unknown"


def test_ranks_that_move_in_their_own_code_are_no_hang() -> None:
    assert blame.blame(live(*(stacked(r, ELSEWHERE, BUSY) for r in (0, 1)))).cause == "none"


def test_heartbeats_alone_say_who_is_behind() -> None:
    ahead = Rank(0, beat=Beat(0, 2, status={"0": Status(4, -1, 3)}))
    behind = Rank(1, beat=Beat(1, 2, status={"0": Status(3, -1, 3)}))
    found, finding = said(Job((ahead, behind), 2))
    assert (found.ranks, found.waiting) == ((1,), (0,))
    assert "collective 4 of the default group" in finding.summary


def test_equal_heartbeats_say_nothing() -> None:
    ranks = tuple(Rank(r, beat=Beat(r, 2, status={"0": Status(4, -1, 3)})) for r in (0, 1))
    assert blame.blame(Job(ranks, 2)).cause == "unknown"


def ras(*ranks: RasRank, earlier: tuple[RasRank, ...] | None = None) -> Ras:
    most = {"AllReduce": max(r.counts.get("AllReduce", 0) for r in ranks)}
    now = Communicator("0xae", len(ranks), ranks, most)
    before = (replace(now, ranks=earlier),) if earlier else (now,)
    return Ras("localhost:28028", "2.29.1", (now,), before)


def counted(rank: int, many: int) -> RasRank:
    return RasRank(rank, "node", 100 + rank, {"AllReduce": many})


def test_nccl_knows_who_has_launched_fewer_collectives() -> None:
    ranks = tuple(Rank(r, 100 + r, alive=True, kernel=BUSY) for r in (0, 1))
    found, finding = said(live(*ranks, ras=ras(counted(0, 7), counted(1, 6))))
    assert (found.ranks, found.waiting, finding.confidence) == ((1,), (0,), "likely")


def test_counts_that_grow_are_no_hang_for_nccl() -> None:
    ranks = tuple(Rank(r, 100 + r, alive=True, kernel=BUSY) for r in (0, 1))
    told = ras(counted(0, 7), counted(1, 6), earlier=(counted(0, 5), counted(1, 5)))
    assert blame.blame(live(*ranks, ras=told)).cause == "unknown"


@pytest.mark.parametrize(("dead", "name"), [(False, "rank-stuck"), (True, "rank-died")])
def test_nccl_knows_who_does_not_answer(dead: bool, name: str) -> None:  # noqa: FBT001
    silent = RasRank(1, "node", 101, missing=True, unresponsive=True, dead=dead)
    ranks = (Rank(0, 100, alive=True, kernel=BUSY),)
    found, finding = said(live(*ranks, world=2, ras=ras(counted(0, 7), silent)))
    assert (found.ranks, finding.name) == ((1,), name)


# ---- words --------------------------------------------------------------------------------------


def test_every_cause_has_its_words() -> None:
    from torchdoctor.tables import load  # noqa: PLC0415 - only here

    rows = load("hang")["cause"]
    assert {row["name"] for row in rows.values()} <= set(verdict.FINDS)
    assert set(verdict.FINDS) == {row["name"] for row in rows.values()}


def test_for_others_files_have_no_folders() -> None:
    behind = seen(1, SLEEPS, make.dump(1, *make.agreed(3)), stack=ELSEWHERE)
    job = live(seen(0, STILL, waiting(0, 4)), behind)
    found = blame.blame(job)
    finding = verdict.finding(found, job, short=True)
    assert finding is not None
    assert "/job/" not in str(finding)
    assert "data.py:9" in finding.summary
