"""Which failure came first, by what ranks have said and by how torchrun saw them end."""

from __future__ import annotations

from typing import Any

import pytest

from torchdoctor.training.harness import launch

START = {"event": "start", "time": 1.0, "torch": "2.13.0", "python": "3.11.7", "backend": "gloo"}


def rank(number: int, *events: dict[str, Any], at: float = 2.0, stage: str = "data") -> Any:
    said = [{**START, "rank": number, "pid": 100 + number}, *events]
    where = {"step": 7, "stage": stage, "time": at}
    return {"rank": number, "events": [{"rank": number, **e} for e in said], "at": where}


def failed(time: float, **more: Any) -> dict[str, Any]:
    base = {"kind": "RuntimeError", "message": "Connection closed by peer", "culprit": None}
    return {"event": "failed", "time": time, "stage": "agree", "collective": True, **base, **more}


DONE = {"event": "done", "time": 3.0}


def first(*ranks: Any, said: str = "") -> Any:
    return launch.judged(list(ranks), said)["first_failure"]


def test_a_run_whose_ranks_are_done_is_done() -> None:
    found = launch.judged([rank(0, DONE), rank(1, DONE)], "")
    assert (found["outcome"], found["first_failure"]) == ("done", None)
    assert found["versions"] == {
        "torch": "2.13.0",
        "cuda": None,
        "python": "3.11.7",
        "backend": "gloo",
    }


def test_what_a_rank_failed_of_by_itself_comes_before_what_others_noticed_sooner() -> None:
    own = failed(2.5, kind="KeyError", message="'x'", stage="data", collective=False)
    found = first(rank(0, failed(2.1)), rank(1, own))
    assert (found["rank"], found["kind"]) == (1, "KeyError")


def test_what_all_have_agreed_on_names_the_rank_that_it_came_from() -> None:
    nan = {"kind": "RankError", "message": "the loss of rank 1 is nan", "culprit": 1}
    found = first(rank(0, failed(2.1, **nan)), rank(1, failed(2.2, **nan)))
    assert found["rank"] == 1


def test_a_rank_that_died_without_a_word_is_named_by_its_signal() -> None:
    said = "  exitcode  : -9 (pid: 101)\n  exitcode  : 1 (pid: 100)\n"
    found = first(rank(0, failed(2.5)), rank(1), said=said)
    assert (found["rank"], found["kind"]) == (1, "SIGKILL")
    assert found["message"] == (
        "rank 1 was ended by SIGKILL in step 7, stage data, without an error of its own"
    )


def test_of_those_that_are_silent_the_one_that_torchrun_ended_is_not_the_first() -> None:
    said = "exitcode  : -15 (pid: 100)\nexitcode  : -11 (pid: 101)\n"
    assert first(rank(0, at=1.5), rank(1), said=said)["kind"] == "SIGSEGV"


def test_a_rank_that_others_waited_for_in_vain_is_named() -> None:
    found = first(rank(0, failed(62.0)), rank(1, at=2.0))
    assert (found["rank"], found["kind"], found["stage"]) == (1, "silent", "data")


def test_those_that_failed_while_they_talked_come_in_the_order_of_time() -> None:
    assert first(rank(0, failed(2.6)), rank(1, failed(2.5)))["rank"] == 1


def test_a_run_that_was_stopped_did_not_fail() -> None:
    stopped = {"event": "stopped", "time": 3.0, "signal": 15, "step": 7}
    found = launch.judged([rank(0, stopped), rank(1, stopped)], "exitcode : -15 (pid: 9)")
    assert (found["outcome"], found["first_failure"]) == ("stopped", None)


@pytest.mark.parametrize("said", ["", "torchrun: error: unrecognized arguments"])
def test_a_run_that_never_began_is_told_in_the_launchers_words(said: str) -> None:
    nobody = [{"rank": 0, "events": [], "at": {}}]
    found = launch.judged(nobody, said)
    assert found["outcome"] == "failed"
    assert found["first_failure"] == {"rank": None, "kind": "launcher", "message": said}


def test_a_run_that_took_too_long_is_told_as_that() -> None:
    nobody = [{"rank": 0, "events": [], "at": {}}]
    assert launch.judged(nobody, "", late=True)["first_failure"]["kind"] == "timeout"  # type: ignore[index]
