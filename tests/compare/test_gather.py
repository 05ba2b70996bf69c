"""The snapshots of a job come to rank 0, by the network or a folder; who does not come is named."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import environments
from tests.all_reduce import hosts
from torchdoctor import cli
from torchdoctor.child import Run
from torchdoctor.compare.sources import read
from torchdoctor.distributed import muster
from torchdoctor.distributed.launcher import Seat
from torchdoctor.distributed.muster import Gathered, Place
from torchdoctor.snapshot import Snapshot, dump

OF_THIS = tuple(entry for entry in sys.path if entry.endswith("site-packages"))
LIMIT = 150


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port: int = gone.getsockname()[1]
    return port


def a_place(rank: int, world: int, port: int, folder: str | None = None, **known: str) -> Place:
    seat = Seat("torchrun", rank, world, rank, "127.0.0.1", port)
    return muster.place(seat, known, folder)


def a_line(place: Place, text: str = "here") -> str:
    snapshot = Snapshot("now", {"p": Run((), "answered", reason=text)}, redacted=True)
    return muster.line(snapshot, place.seat)


def met(
    places: list[Place], texts: Mapping[int, str], seconds: float
) -> tuple[Gathered, list[str]]:
    """Have all ranks of *places* meet; return what came to rank 0, and why others failed."""
    failed: list[str] = []

    def bring(place: Place) -> None:
        text = texts.get(place.seat.rank, a_line(place))
        if why := muster.bring(place, text, seconds):
            failed.append(f"{place.seat.rank}: {why}")

    threads = [threading.Thread(target=bring, args=(place,)) for place in places[1:]]
    for thread in threads:
        thread.start()
    gathered = muster.at_rank_0(places[0], lambda: a_line(places[0]), seconds, 0.2)
    for thread in threads:
        thread.join()
    return gathered, failed


def ranks(gathered: Gathered) -> list[int]:
    with contextlib.closing(gathered):
        lines = [json.loads(line) for line in gathered.lines()]
    return sorted(line["options"]["seat"]["rank"] for line in lines)


# ---- the meeting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["network", "folder"])
def test_all_ranks_come_and_those_that_did_not_look_only_say_that_they_are_there(
    by: str, tmp_path: Path
) -> None:
    port, folder = free_port(), str(tmp_path) if by == "folder" else None
    places = [a_place(rank, 4, port, folder) for rank in range(4)]
    gathered, failed = met(places, {1: "", 3: ""}, 20)
    assert failed == []
    assert gathered.missing(4) == []
    assert ranks(gathered) == [0, 2]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("by", ["network", "folder"])
def test_a_rank_that_does_not_come_is_known_and_waited_for_no_longer_than_asked(
    by: str, tmp_path: Path
) -> None:
    port, folder = free_port(), str(tmp_path) if by == "folder" else None
    places = [a_place(rank, 3, port, folder) for rank in range(2)]
    began = time.monotonic()
    gathered, failed = met(places, {}, 0.5)
    assert failed == []
    assert gathered.missing(3) == [2]
    assert ranks(gathered) == [0, 1]
    assert time.monotonic() - began < 0.5 + 2


def test_the_next_port_is_taken_where_the_launchers_is_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))  # and never answers
        port: int = taken.getsockname()[1]
        places = [a_place(rank, 2, port) for rank in range(2)]
        gathered, failed = met(places, {}, 20)
    assert failed == []
    assert ranks(gathered) == [0, 1]


def test_a_rank_of_another_job_does_not_count() -> None:
    port = free_port()
    places = [a_place(0, 2, port), a_place(1, 2, port, SLURM_JOB_ID="7")]
    gathered, failed = met(places, {}, 0.5)
    assert gathered.missing(2) == [1]
    assert ranks(gathered) == [0]
    assert failed[0].startswith(f"1: rank 0 does not answer at 127.0.0.1, ports {port} to ")


def test_what_is_no_snapshot_is_refused_and_named() -> None:
    port = free_port()
    places = [a_place(rank, 2, port) for rank in range(2)]
    gathered, _ = met(places, {1: '{"schema": "another"}'}, 20)
    assert ranks(gathered) == [0]
    assert "no snapshot of torchdoctor" in gathered.refused[1]


def test_a_file_of_an_earlier_job_in_the_folder_is_not_taken(tmp_path: Path) -> None:
    place = a_place(1, 2, free_port(), str(tmp_path))
    assert muster.bring(place, a_line(place), 1) == ""
    (old,) = tmp_path.iterdir()
    then = time.time() - 2 * muster.OLD
    os.utime(old, (then, then))
    first = a_place(0, 2, place.seat.port, str(tmp_path))
    gathered = muster.at_rank_0(first, lambda: a_line(first), 0.1, 0)
    assert gathered.missing(2) == [1]
    assert ranks(gathered) == [0]


def test_beside_a_store_of_the_launcher_its_port_is_not_asked() -> None:
    own = Seat("torchrun", 0, 2, 0, "n0", 1234)
    launchers = Seat("torchrun", 0, 2, 0, "n0", 1234, "launcher")
    assert muster.place(own, {}, None).ports[0] == 1234
    assert muster.place(launchers, {}, None).ports[0] == 1235


def test_the_host_is_in_the_line_only_where_that_is_asked_for() -> None:
    place = a_place(1, 2, 1)
    snapshot = Snapshot("now", {})
    plain, named = muster.line(snapshot, place.seat), muster.line(snapshot, place.seat, "node-7")
    assert "node-7" not in plain
    assert json.loads(named)["options"]["seat"]["host"] == "node-7"
    assert plain.count("\n") == 1
    assert json.loads(dump(snapshot))["probes"] == json.loads(plain)["probes"]


# ---- the command ---------------------------------------------------------------------------------


def test_without_a_launcher_it_says_how_to_start_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["collect", "--gather"]) == 2
    assert "torchrun --nnodes 2" in capsys.readouterr().err


def started(
    folder: Path, before: tuple[str, ...], words: tuple[str, ...], **more: str
) -> subprocess.Popen[str]:
    environ = environments.environ(
        folder,
        PYTHONPATH=os.pathsep.join((str(environments.CHECKOUT), *OF_THIS)),
        TMPDIR=str(folder),
        **more,
    )
    command = (*before, "-m", "torchdoctor", "collect", "--gather", "--no-import", *words)
    return subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.parametrize("world", [pytest.param(2, marks=pytest.mark.sample), 3])
def test_ranks_that_a_launcher_started_make_one_file_and_the_one_that_is_missing_is_named(
    world: int, tmp_path: Path
) -> None:
    port, file = str(free_port()), tmp_path / "fleet.jsonl"
    given = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    words = ("-o", str(file), "--wait", "15")
    both = [
        started(tmp_path, (sys.executable,), words, RANK=rank, LOCAL_RANK="0", **given)
        for rank in ("0", "1")
    ]
    said = [one.communicate(timeout=LIMIT) for one in both]
    assert [one.returncode for one in both] == [int(world == 3), 0], said
    assert f"2 machines of {world} ranks" in said[0][1]
    assert ("within 15 s nothing came of rank 2." in said[0][1]) == (world == 3)
    assert sorted(one.name for one in read([str(file)])) == ["rank 0", "rank 1"]


@pytest.mark.slow
@hosts.needs_hosts
def test_two_hosts_under_torchrun_are_gathered_once_each(tmp_path: Path) -> None:
    python = str(environments.base().root / "bin/python")
    file = tmp_path / "fleet.jsonl"
    with hosts.two() as both:
        launchers = [
            started(
                tmp_path,
                (
                    *both.inside(which),
                    *(python, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2"),
                    *(f"--node-rank={which}", "--rdzv-backend=c10d", "--rdzv-id=t"),
                    f"--local-addr={hosts.ADDRESSES[which]}",
                    f"--rdzv-endpoint={hosts.ADDRESSES[0]}:{hosts.PORT}",
                ),
                ("-o", str(file), "--wait", "60"),
            )
            for which in (0, 1)
        ]
        said = [launcher.communicate(timeout=LIMIT) for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], said
    assert sorted(one.name for one in read([str(file)])) == ["rank 0", "rank 2"]
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert all(line["redacted"] for line in lines)
    assert "2 machines of 4 ranks" in said[0][1]
