"""Who is to blame, judged on what ranks said: recorded runs, and runs put together."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.all_reduce import make, trying
from tests.all_reduce.faults import EVERY, Fault
from tests.all_reduce.make import ended, error, on, run, until
from tests.all_reduce.record import file_of
from torchdoctor.distributed.blame import Verdict, blame
from torchdoctor.facts import AllReduce, RankRun
from torchdoctor.reading import all_reduce


def blamed(found: AllReduce) -> Verdict:
    verdict = blame(found)
    assert verdict is not None
    return verdict


def short(found: AllReduce) -> tuple[str, str, tuple[int, ...]]:
    verdict = blamed(found)
    return verdict.stage, verdict.cause, verdict.ranks


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in EVERY])
def test_a_recorded_run_is_judged_as_it_was(fault: Fault) -> None:
    verdict = blame(all_reduce.record(json.loads(file_of(fault).read_text("utf-8"))))
    if fault.expected is None:
        assert verdict is None
        return
    assert verdict is not None
    assert (verdict.stage, verdict.cause) == (fault.expected.stage, fault.expected.cause)
    assert verdict.ranks == (trying.far(2) if fault.far else fault.expected.ranks)
    assert verdict.links == (((0, 1),) if fault.expected.across else ())


def test_a_run_whose_ranks_all_came_to_the_end_has_nobody_to_blame() -> None:
    assert blame(make.healthy()) is None


def test_a_rank_that_nobody_heard_of_is_to_blame_before_all_that_waited_for_it() -> None:
    whole = run(error("check-in", "missing", missing=[2]), until("check-in", "call"), ())
    assert short(replace(whole, ranks=whole.ranks[:2])) == ("spawn", "not-started", (2,))


def test_a_rank_that_died_before_it_said_a_word_has_died() -> None:
    for how in ({"signal": "SIGSEGV"}, {"exit_code": 1}):
        found = run(until("tcp", "enter"), ended((), ended_at=0.1, **how))
        assert short(found) == ("spawn", "died", (1,))


def test_a_rank_that_had_to_be_ended_without_a_word_has_never_started() -> None:
    found = run(until("tcp", "enter"), ended((), signal="SIGKILL", ended_by_us=True))
    assert short(found) == ("spawn", "not-started", (1,))


def test_what_a_rank_found_of_itself_counts_before_what_the_others_saw_of_it() -> None:
    found = run(
        ended(make.echo("communicator", at=1.0), exit_code=4, ended_at=1.0),
        ended(error("communicator", at=2.0), exit_code=4, ended_at=2.0),
    )
    assert short(found) == ("communicator", "raised", (1,))


def test_of_two_own_errors_the_one_in_the_earlier_stage_counts() -> None:
    found = run(error("device", "shm-full", at=9.0), error("facts", "interface", at=1.0))
    assert short(found) == ("device", "shm-full", (0,))


def test_ranks_that_fail_in_one_stage_for_one_reason_are_told_together() -> None:
    found = run(*(error("device", "no-nccl") for _ in range(3)), until("store", "call"))
    assert short(found) == ("device", "no-nccl", (0, 1, 2))


def test_wrong_data_are_those_of_the_rank_whose_slots_are_wrong_not_of_those_who_see_it() -> None:
    found = run(*(error("verify", "wrong-data", ranks=[3]) for _ in range(8)))
    assert short(found) == ("verify", "wrong-data", (3,))


def test_a_rank_that_died_is_to_blame_and_not_the_one_that_saw_it() -> None:
    found = run(
        ended(make.echo("all-reduce"), exit_code=4, ended_at=1.1),
        ended(until("all-reduce", "call"), signal="SIGKILL", ended_at=1.0),
    )
    assert short(found) == ("all-reduce", "died", (1,))


def test_of_two_that_died_the_first_is_to_blame() -> None:
    found = run(
        ended(until("all-reduce", "call"), signal="SIGABRT", ended_at=3.0),
        ended(until("all-reduce", "call"), signal="SIGKILL", ended_at=2.5),
    )
    assert short(found) == ("all-reduce", "died", (1,))


def test_who_aborts_over_a_size_is_not_to_blame_where_the_fingerprints_tell_who_is() -> None:
    aborted = ended(
        until("all-reduce", "call"),
        signal="SIGABRT",
        ended_at=1.0,
        symptoms=("gloo-size-mismatch",),
    )
    prints = {0: "ALLREDUCE [4096] Float", 1: "ALLREDUCE [9999] Float"}
    found = run(aborted, make.echo("all-reduce"), fingerprints=prints)
    assert short(found) == ("all-reduce", "mismatch", (1,))
    assert short(replace(found, fingerprints={})) == ("all-reduce", "mismatch", ())


def test_fingerprints_of_a_second_run_count_for_the_first() -> None:
    again = run((), (), fingerprints={0: "ALLREDUCE [4096] Float", 1: "BROADCAST [4096] Float"})
    found = run(until("all-reduce", "call"), until("all-reduce", "call"), again={"DETAIL": again})
    assert short(found) == ("all-reduce", "mismatch", (1,))


def test_without_the_collective_that_was_asked_for_the_odd_one_among_many_is_to_blame() -> None:
    prints = dict.fromkeys(range(4), "ALLGATHER [4]") | {2: "ALLGATHER [5]"}
    found = run(*(until("all-reduce", "call") for _ in range(4)), fingerprints=prints)
    assert blamed(found).ranks == (2,)


def test_a_rank_that_is_stopped_is_to_blame_even_where_another_is_further_behind() -> None:
    found = run(
        ended(until("all-reduce", "call"), ended_by_us=True, state="T do_signal_stop"),
        until("all-reduce", "enter"),
    )
    assert short(found) == ("all-reduce", "stopped", (0,))


def test_whoever_has_not_made_the_call_is_behind_those_that_wait_in_it() -> None:
    ranks = [until("all-reduce", "call")] * 7
    found = run(*ranks[:5], until("all-reduce", "enter"), *ranks[5:])
    assert short(found) == ("all-reduce", "late", (5,))


def test_where_all_wait_in_one_call_on_one_machine_no_rank_is_to_blame() -> None:
    found = run(*(on("1", until("all-reduce", "call")) for _ in range(2)))
    verdict = blamed(found)
    assert (verdict.cause, verdict.ranks, verdict.links) == ("stuck", (), ())


@pytest.mark.parametrize("other", [make.echo("all-reduce", make.WAITED), until("barrier", "call")])
def test_where_those_behind_wait_in_a_call_beyond_a_network_it_is_the_link(
    other: tuple[object, ...],
) -> None:
    found = run(on("1", other), on("2", until("all-reduce", "call")))  # type: ignore[arg-type]
    verdict = blamed(found)
    assert (verdict.cause, verdict.ranks, verdict.links) == ("link-lost", (), ((0, 1),))


def test_a_rank_beyond_a_network_that_has_not_made_the_call_is_to_blame_itself() -> None:
    found = run(on("1", until("all-reduce", "call")), on("2", until("all-reduce", "enter")))
    assert short(found) == ("all-reduce", "late", (1,))


def failing(*peers: int, why: str = "timeout") -> tuple[object, ...]:
    return error("pairwise", "links", links=[{"why": why, "peer": peer} for peer in peers])


def test_a_rank_at_the_end_of_every_broken_link_is_to_blame_beside_the_links() -> None:
    good = until("communicator", "call")
    found = run(failing(3), failing(3), good, failing(0, 1))  # type: ignore[arg-type]
    verdict = blamed(found)
    assert (verdict.cause, verdict.ranks) == ("link-timeout", (3,))
    assert verdict.links == ((0, 3), (1, 3))


def test_links_between_two_machines_have_no_rank_in_common() -> None:
    found = run(failing(2, 3), failing(2, 3), failing(0, 1), failing(0, 1))  # type: ignore[arg-type]
    verdict = blamed(found)
    assert (verdict.ranks, verdict.links) == ((), ((0, 2), (0, 3), (1, 2), (1, 3)))


def test_who_cannot_reach_rank_0_blames_no_rank_though_it_is_at_the_end_of_all_links() -> None:
    far = error("tcp", "timeout", peer=0, host="10.0.0.1", port=1)
    verdict = blamed(run(until("check-in", "call"), far, far))
    assert (verdict.stage, verdict.cause, verdict.ranks) == ("tcp", "link-timeout", ())
    assert verdict.links == ((0, 1), (0, 2))


def test_who_cannot_reach_rank_0_since_it_failed_blames_rank_0() -> None:
    found = run(error("port-bind", "port-refused", at=0.1), error("tcp", "refused", peer=0, at=6.0))
    assert short(found) == ("port-bind", "port-refused", (0,))


def test_a_known_message_of_a_library_has_its_cause() -> None:
    *before, last = error("communicator")
    told = (*before, replace(last, symptoms=("nccl-no-interface",)))
    assert short(run(told, until("communicator", "call"))) == ("communicator", "interface", (0,))


def test_who_was_ended_by_torch_s_watchdog_has_waited_and_not_died() -> None:
    waited = {"signal": "SIGABRT", "symptoms": ("watchdog-timeout", "watchdog-took-down")}
    here = ended(until("all-reduce", "call"), ended_at=9.0, **waited)
    other = ended(until("all-reduce", "call"), ended_at=8.9, **waited)
    assert short(run(here, other)) == ("all-reduce", "stuck", ())
    late = ended(until("all-reduce", "enter"), ended_by_us=True)
    assert short(run(here, late)) == ("all-reduce", "late", (1,))
    aborted = ended(until("all-reduce", "call"), ended_at=9.5, signal="SIGABRT")
    assert short(run(here, aborted)) == ("all-reduce", "died", (1,))


def test_what_nccl_logged_has_the_cause_that_its_exception_does_not_name() -> None:
    *before, last = error("communicator")
    told = (*before, replace(last, symptoms=("nccl-error",)))
    logged = ended(told, exit_code=4, ended_at=1.0, symptoms=("shm-no-space",))
    assert short(run(logged, until("communicator", "call"))) == ("communicator", "shm-full", (0,))
    other = ended(error("communicator"), exit_code=4, ended_at=1.0, symptoms=("shm-no-space",))
    assert short(run(other, until("communicator", "call"))) == ("communicator", "raised", (0,))


def test_a_message_that_no_table_knows_is_the_rank_s_own() -> None:
    found = run(error("communicator"), until("communicator", "call"))
    assert short(found) == ("communicator", "raised", (0,))


def test_of_those_that_nothing_was_heard_of_the_ones_that_never_came_are_to_blame() -> None:
    waited = error("check-in", "missing", missing=[2])
    whole = run(waited, waited, (), ())
    found = replace(whole, ranks=whole.ranks[:2], unheard=(2, 3))
    verdict = blamed(found)
    assert (verdict.stage, verdict.cause, verdict.ranks) == ("check-in", "absent", (2,))
    assert verdict.links == ((0, 2),)


def test_where_the_others_met_and_one_is_not_heard_any_more_it_is_the_link_to_it() -> None:
    whole = run(until("all-reduce", "call"), ())
    found = replace(whole, ranks=whole.ranks[:1], unheard=(1,))
    verdict = blamed(found)
    assert (verdict.cause, verdict.ranks, verdict.links) == ("link-lost", (), ((0, 1),))


def test_a_run_that_is_well_here_is_well_though_another_rank_s_record_did_not_come() -> None:
    whole = make.healthy()
    assert blame(replace(whole, ranks=whole.ranks[:1], unheard=(1,))) is None


def test_no_record_however_damaged_breaks_the_judgement() -> None:
    odd = (make.event("nowhere", "error", links="none", peer="x"), make.event("", "beat"))
    for rank in (RankRun(0), RankRun(0, odd), RankRun(5, odd, started=False)):
        assert blame(AllReduce(2, (rank,))) is not None
    assert blame(AllReduce(0, ())) is not None
