"""The supervisor comes back in time and leaves nothing, whatever its ranks do.

The ranks are small programs of the standard library here, so that a run takes a second.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests import environments
from torchdoctor.distributed import session, supervisor
from torchdoctor.distributed.blame import blame
from torchdoctor.distributed.heartbeat import MOST, SLOWEST
from torchdoctor.distributed.stages import Limits
from torchdoctor.distributed.supervisor import Job, Place
from torchdoctor.facts import AllReduce

BEGIN = """
import faulthandler, json, os, signal, subprocess, sys, time
OPTIONS = json.loads(sys.argv[1])
RANK = OPTIONS["rank"]
FILE = open(os.path.join(OPTIONS["folder"], "rank%d.jsonl" % RANK), "ab", buffering=0)
STACKS = open(os.path.join(OPTIONS["folder"], "rank%d.stack" % RANK), "w")
faulthandler.register(signal.SIGUSR1, STACKS)
def say(stage, ev, **more):
    FILE.write((json.dumps(dict(more, t=0.1, stage=stage, ev=ev)) + "\\n").encode())
def wait_for_ever():
    time.sleep(3600)
"""
DONE = 'say("spawn", "enter"); say("spawn", "ok"); say("done", "ok")'
SHORT = Limits(whole=6.0, stage=0.3, importing=0.3)
linux = pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")


def run(body: str, folder: Path, limits: Limits = SHORT, world: int = 2) -> AllReduce:
    """Run ranks that do *body*; it ends in time, and nothing is left of it."""
    mark = f"H_{os.urandom(8).hex()}"
    environ = {**os.environ, mark: "1"}
    places = {rank: Place((sys.executable, "-I"), environ) for rank in range(world)}
    start = time.monotonic()
    answer = supervisor.run(Job(places, world, limits, source=f"{BEGIN}\n{body}\n"), folder)
    assert time.monotonic() - start < limits.whole + 2
    if sys.platform == "linux":
        until = time.monotonic() + 1.0  # what was killed takes a moment to be gone
        while left := list(environments.marked(mark)):
            assert time.monotonic() < until, left
            time.sleep(0.02)
    return session.read(answer)


def test_ranks_that_come_to_the_end_are_done(tmp_path: Path) -> None:
    found = run(DONE, tmp_path)
    assert (found.ended, blame(found)) == ("done", None)


def test_one_that_says_the_end_and_fails_is_not_done(tmp_path: Path) -> None:
    assert run(f"{DONE}; os._exit(RANK)", tmp_path).ended == "rank-ended"


def test_one_that_never_says_a_word_is_ended_after_the_time_for_it(tmp_path: Path) -> None:
    found = run(f"if RANK == 1: wait_for_ever()\n{DONE}\nwait_for_ever()", tmp_path)
    verdict = blame(found)
    assert verdict is not None
    assert (found.ended, verdict.cause, verdict.ranks) == ("stage-limit", "not-started", (1,))
    assert found.seconds < 3


def test_one_that_says_more_and_more_is_ended_when_all_time_is_up(tmp_path: Path) -> None:
    body = "while True:\n    say('tcp', 'enter'); time.sleep(0.05)"
    found = run(body, tmp_path, Limits(whole=2.0, stage=0.3, importing=0.3))
    assert found.ended == "limit"


def test_those_ahead_are_not_late_while_another_is_within_its_time(tmp_path: Path) -> None:
    body = (
        "say('spawn', 'enter'); say('spawn', 'ok')\n"
        "if RANK == 0: say('check-in', 'enter'); time.sleep(3.5)\n"
        "else: say('import', 'enter'); time.sleep(3.2)\n"
        f"{DONE}"
    )
    assert run(body, tmp_path, Limits(whole=9.0, stage=0.1, importing=3.0)).ended == "done"


def test_ranks_on_a_slow_machine_have_more_time_for_every_stage_but_the_import() -> None:
    limits = Limits(whole=100.0, stage=10.0, importing=60.0)
    assert [limits.of(stage, slowness=3.0) for stage in ("import", "facts")] == [62.0, 36.0]
    assert [limits.of(stage) for stage in ("import", "facts")] == [62.0, 12.0]
    assert limits.of("check-in", elsewhere=True, slowness=2.0) == 144.0


def test_a_rank_is_believed_to_be_slow_but_not_beyond_measure(tmp_path: Path) -> None:
    body = f"say('spawn', 'enter'); say('import', 'fact', slowness=10**9)\n{DONE}"
    places = {0: Place((sys.executable, "-I"), dict(os.environ))}
    job = Job(places, 1, SHORT, source=f"{BEGIN}\n{body}\n")
    assert supervisor.run(job, tmp_path)["slowness"] == SLOWEST


def test_the_others_have_a_moment_to_say_what_they_saw(tmp_path: Path) -> None:
    body = "if RANK == 1: os._exit(3)\ntime.sleep(0.7); say('tcp', 'error', message='gone')"
    found = run(body, tmp_path)
    assert found.ranks[0].events[-1].values["message"] == "gone"
    assert (found.ranks[1].exit_code, found.ranks[1].ended_by_us) == (3, False)


@linux
def test_one_that_is_stopped_is_seen_and_ended(tmp_path: Path) -> None:
    body = "say('import', 'enter')\nif RANK: os.kill(os.getpid(), signal.SIGSTOP)\nwait_for_ever()"
    found = run(body, tmp_path, Limits(whole=20.0, stage=9.0, importing=9.0))
    assert found.ended == "stopped"
    assert found.ranks[1].state.startswith("T")
    assert found.ranks[0].state.startswith("S")


@linux
def test_where_a_rank_was_is_told_by_its_stack(tmp_path: Path) -> None:
    found = run("say('tcp', 'enter'); wait_for_ever()", tmp_path)
    assert "in wait_for_ever" in found.ranks[0].stack


@linux
def test_what_a_rank_started_ends_with_it_even_in_a_session_of_its_own(tmp_path: Path) -> None:
    body = (
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
        f" start_new_session=True)\n{DONE}"
    )
    assert run(body, tmp_path).ended == "done"  # run() has looked that none is left


def test_a_flood_and_rubbish_are_bounded_and_left_out(tmp_path: Path) -> None:
    body = (
        "FILE.write(b'no json\\n[1]\\n{\"torn\": ')\nFILE.write(b'1}\\n\\xff\\xfe\\n')\n"
        "for n in range(3 * 1000): say('tcp', 'fact', n=n)\n"
        f"print('x' * 10**6)\n{DONE}"
    )
    found = run(body, tmp_path, Limits(whole=20.0, stage=5.0, importing=5.0))
    assert found.ended == "done"
    assert len(found.ranks[0].events) <= MOST + 3


def test_the_log_that_nccl_writes_for_each_rank_is_read(tmp_path: Path) -> None:
    said = "host:1:2 [0] NCCL INFO Bootstrap : no socket interface found"
    body = f"open(os.environ['NCCL_DEBUG_FILE'], 'w').write({said!r})\n{DONE}"
    assert run(body, tmp_path).ranks[1].symptoms == ("nccl-no-interface",)


def test_of_a_long_log_of_nccl_the_warnings_in_its_midst_are_kept(tmp_path: Path) -> None:
    said = "host:1:2 [0] NCCL WARN NET/Socket : no interface found"
    chatter = "host:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n" * 4000
    body = (
        "log = open(os.environ['NCCL_DEBUG_FILE'], 'w')\n"
        f"log.write({chatter!r} + {said!r} + '\\n' + {chatter!r}); log.close()\n{DONE}"
    )
    assert "nccl-no-interface" in run(body, tmp_path).ranks[1].symptoms


def test_one_whose_interpreter_is_not_there_is_never_started(tmp_path: Path) -> None:
    job = Job({0: Place(("/nowhere/python",), {})}, 1, SHORT, source=BEGIN)
    found = session.read(supervisor.run(job, tmp_path))
    assert not found.ranks[0].started
    assert "No such file" in found.ranks[0].reason
