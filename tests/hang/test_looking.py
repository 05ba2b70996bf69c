"""What a rank that is not armed has written by itself is found, and torch is asked by its pipe."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hang import make
from tests.hang.test_ras import JSON, Server, serving
from torchdoctor.hang import blame, looking, verdict

WISH = looking.Wish(0.2, os.environ, py_spy=False, ras=False)
PIPED = """
import os, sys, time
prefix, pending = sys.argv[1], sys.argv[2]
os.mkfifo(prefix + "0.pipe")
pipe = os.open(prefix + "0.pipe", os.O_RDONLY | os.O_NONBLOCK)
print(flush=True)
while not os.read(pipe, 128):
    time.sleep(0.02)
os.rename(pending, prefix + "0")
time.sleep(60)
"""
"""Does with its pipe what ProcessGroupNCCL does: DumpPipe in ProcessGroupNCCL.hpp."""


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Return a process that plays rank 0 of 2."""
    pending = tmp_path / "pending"
    entries = [*make.agreed(2), make.call(3, state="started")]
    pending.write_bytes(make.as_pickle(make.raw(entries)))
    prefix = str(tmp_path / "trace_")
    environ = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "node7",
        "MASTER_PORT": str(29_500 + os.getpid() % 1000),
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": prefix,
        "TORCH_FR_DUMP_TEMP_FILE": prefix,
    }
    command = [sys.executable, "-c", PIPED, prefix, str(pending)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_torch_is_asked_by_the_pipe_that_it_made(rank: subprocess.Popen[str]) -> None:
    began = time.monotonic()
    job = looking.live(rank.pid, WISH)
    assert time.monotonic() - began < looking.ANSWER * 2 + 1
    (seen,) = job.ranks
    assert seen.dump is not None
    assert [entry.number for entry in seen.dump.entries] == [1, 2, 3]
    assert not seen.armed
    found = blame.blame(job)
    assert (found.cause, found.ranks, found.waiting) == ("no-dump", (1,), (0,))


def test_what_was_written_before_the_process_began_is_not_its(tmp_path: Path) -> None:
    old = tmp_path / "cache/torch/comm_lib_trace_rank_0"
    old.parent.mkdir(parents=True)
    old.write_bytes(make.as_pickle(make.raw(make.agreed(2))))
    os.utime(old, (1, 1))
    environ = {"RANK": "0", "WORLD_SIZE": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environ["MASTER_PORT"] = str(29_500 + os.getpid() % 1000)
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environ
    )
    assert looking.live(process.pid, WISH).ranks[0].dump is None
    os.utime(old)
    dump = looking.live(process.pid, WISH).ranks[0].dump
    process.communicate(b"\n")
    assert dump is not None
    assert len(dump.entries) == 2


@pytest.mark.parametrize("ours", [True, False])
def test_nccl_is_believed_where_it_is_the_one_of_this_job(ours: bool) -> None:  # noqa: FBT001
    with serving(Server()) as server:
        environ = {"RANK": "0", "WORLD_SIZE": "2", "NCCL_RAS_ADDR": server.address}
        environ |= {"MASTER_ADDR": "node7", "MASTER_PORT": str(29_500 + os.getpid() % 1000)}
        command = [sys.executable, "-c", "input()"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environ)
        if ours:
            server.report = JSON.replace("1524344", str(process.pid))
        job = looking.live(process.pid, looking.Wish(0.2, {}, py_spy=False))
        process.communicate(b"\n")
    if not ours:
        assert job.ras is None
        return
    assert job.ras is not None
    found = blame.blame(job)
    assert (found.cause, found.ranks, found.waiting) == ("silent", (1,), (0,))
    finding = verdict.finding(found, job)
    assert finding is not None
    assert finding.summary == (
        "Rank 1 does not answer NCCL (communicator 0xae94423cfbb2ef4a), and all others do."
    )
