"""A rank whose script came to its end: it says so whatever else goes on, and is no crash."""

from __future__ import annotations

import importlib
import os
import signal
import time
from pathlib import Path

import pytest

from tests.hang import make
from tests.hang.jobs import finding_of, running
from tests.hang.test_arm import Armed
from tests.hang.test_blame import BUSY, C10D, ELSEWHERE, STILL, gone, live, said, seen, waiting
from torchdoctor.hang import blame, looking, signs
from torchdoctor.hang.records import Beat, Frame, Rank, Status

ROUNDS = 20
PATIENCE = 60.0
LINGERS = """
import atexit, time
atexit.register(time.sleep, 0.3)  # runs after the end that arm() tells
arm("armed", every=0.001, rank=0, world_size=2)
"""
IN_BROADCAST = (Frame("broadcast", C10D, 3000), Frame("train", "/job/train.py", 44))


# ---- what the rank says -------------------------------------------------------------------------


def test_the_end_is_written_while_a_heartbeat_is_being_written(tmp_path: Path) -> None:
    module = importlib.import_module("torchdoctor.training.arm")
    for number in range(ROUNDS):
        place = tmp_path / str(number)
        place.mkdir()
        one = module._Rank(place, 0, 2, 0.0005)  # noqa: SLF001 - as it is made by arm()
        one.start()
        time.sleep(0.002)
        one._ended()  # noqa: SLF001 - what atexit calls
        first = signs.of_file(one.beat)
        time.sleep(0.003)
        later = signs.of_file(one.beat)
        one.stop()
        assert first is not None
        assert later is not None
        assert (first.beat.ended, later.beat.ended) == (True, True), number


def test_the_end_stays_the_last_word_while_the_interpreter_goes_down(tmp_path: Path) -> None:
    armed = Armed(tmp_path, LINGERS)
    armed.end()
    assert armed.beat["ended"] is True


RANK = """
import sys
from torchdoctor.training import arm
def rank(fault):
    arm("armed", every=60, rank=0, world_size=2)
    if fault == "killed":
        import os
        os._exit(1)
    if fault == "raises":
        raise KeyError("no such batch")
    if fault == "wrapped":
        try:
            raise KeyError("no such batch")
        except KeyError:
            sys.exit(1)
    if fault == "leaves":
        sys.exit(0)
"""
CHILD = """
import multiprocessing
from one_rank import rank
child = multiprocessing.get_context({how!r}).Process(target=rank, args=({fault!r},))
child.start()
child.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("fault", "ended", "raised"),
    [
        ("none", True, ""),
        ("leaves", True, ""),
        ("raises", True, "KeyError"),
        ("wrapped", True, "KeyError"),
        ("killed", False, ""),
    ],
)
def test_a_rank_that_multiprocessing_started_says_how_it_ended_too(
    fault: str,
    ended: bool,  # noqa: FBT001
    raised: str,
    how: str,
    tmp_path: Path,
) -> None:
    (tmp_path / "one_rank.py").write_text(RANK)
    armed = Armed(tmp_path, CHILD.format(how=how, fault=fault))
    armed.end()
    assert (armed.beat["ended"], armed.beat["raised"]) == (ended, raised)


# ---- what is made of it -------------------------------------------------------------------------


def ending(rank: int, pid: int | None = None, **more: object) -> Rank:
    """Return a rank whose process is still there, after its script has said that it ended."""
    beat = Beat(rank, 2, 100 + rank if pid is None else pid, ended=True, **more)  # type: ignore[arg-type]
    return seen(rank, STILL, make.dump(rank, *make.agreed(3)), beat=beat, stack=IN_BROADCAST[1:])


def test_a_rank_that_only_unloads_has_come_to_its_end() -> None:
    found, finding = said(live(seen(0, STILL, waiting(0, 4)), ending(1)))
    assert (finding.name, found.ranks, found.waiting) == ("uneven-steps-hang", (1,), (0,))


def test_the_end_of_an_earlier_process_is_not_that_of_this_rank() -> None:
    found, finding = said(live(seen(0, STILL, waiting(0, 4)), ending(1, pid=7)))
    assert (finding.name, found.ranks) == ("rank-stuck", (1,))


def beat(rank: int, at: float, called: int, *, ended: bool = False) -> Beat:
    return Beat(rank, 3, 100 + rank, at=at, ended=ended, status={"0": Status(called, -1, called)})


@pytest.mark.parametrize(
    ("left", "died", "name", "rank"),
    [
        ((50.0, 3), (58.0, 4), "uneven-steps-hang", 1),  # the other failed after it
        ((58.0, 3), (50.0, 4), "rank-died", 0),  # the other was gone before
        ((50.0, 4), (58.0, 4), "rank-died", 0),  # it had called all that the others have
    ],
)
def test_who_left_with_fewer_calls_comes_before_who_died_after_it(
    left: tuple[float, int], died: tuple[float, int], name: str, rank: int
) -> None:
    ranks = (
        Rank(0, alive=False, beat=beat(0, *died)),
        Rank(1, alive=False, beat=beat(1, *left, ended=True)),
        seen(2, STILL, waiting(2, 4), beat=beat(2, 60.0, 4)),
    )
    found, finding = said(live(*ranks))
    assert (finding.name, found.ranks) == (name, (rank,))


def test_one_that_died_without_a_heartbeat_is_to_blame() -> None:
    ranks = (
        Rank(0, alive=False),
        Rank(1, alive=False, beat=beat(1, 50.0, 3, ended=True)),
        seen(2, STILL, waiting(2, 4), beat=beat(2, 60.0, 4)),
    )
    found, finding = said(live(*ranks))
    assert (finding.name, found.ranks) == ("rank-died", (0,))


def test_one_that_works_on_alone_after_the_others_have_ended_is_no_hang() -> None:
    done = make.dump(0, *make.agreed(3))
    alone = seen(0, BUSY, done, stack=ELSEWHERE)
    assert blame.blame(live(alone, gone(1, ended=True))).cause == "none"
    waits = seen(0, BUSY, waiting(0, 4), stack=IN_BROADCAST)
    assert said(live(waits, gone(1, ended=True)))[1].name == "uneven-steps-hang"


# ---- real jobs ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_an_earlier_job_left_in_the_folder_does_not_count(tmp_path: Path) -> None:
    code = """
    import os
    rank = int(os.environ["RANK"])
    arm("armed", every=0.1, rank=rank, world_size=2)
    if rank == 0:
        print(flush=True)
        input()
    """
    environ = {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(29_500 + os.getpid() % 1000),
    }
    Armed(tmp_path, code, environ | {"RANK": "1"}).end()
    later = Armed(tmp_path, code, environ | {"RANK": "0"})
    later.line()
    wish = looking.Wish(0.1, os.environ, py_spy=False, ras=False)
    before = looking.live(later.process.pid, wish).rank(1)
    Armed(tmp_path, code, environ | {"RANK": "1"}).end()
    after = looking.live(later.process.pid, wish).rank(1)
    later.end()
    assert before is not None
    assert after is not None
    assert (before.alive, before.beat) == (False, None)
    assert after.beat is not None
    assert after.beat.ended


@pytest.mark.slow
def test_a_rank_that_failed_because_another_left_is_not_the_first(tmp_path: Path) -> None:
    with running("uneven", tmp_path, ranks=3, launcher="bare", settle=3) as job:
        until = time.monotonic() + PATIENCE
        while job.alive(1):
            assert time.monotonic() < until
            time.sleep(0.1)
        time.sleep(1)  # for a heartbeat of the others
        os.kill(job.ranks[0], signal.SIGKILL)
        seen_now, found = job.look(pid=job.ranks[2])
    assert (finding_of(seen_now, found).name, found.ranks) == ("uneven-steps-hang", (1,))
