"""Under a launcher: which rank one is, and two hosts under a real torchrun."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.all_reduce import hosts, trying
from tests.all_reduce.hosts import Hosts
from torchdoctor.distributed import gather
from torchdoctor.distributed.launcher import Seat, seat

OF_THIS = tuple(entry for entry in sys.path if entry.endswith("site-packages"))
LIMIT = 150


# ---- which rank ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 MASTER_ADDR=n0 MASTER_PORT=1234",
            Seat("torchrun", 1, 4, 1, "n0", 1234),
        ),
        (
            (
                "RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=n0 MASTER_PORT=1234"
                " TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RESTART_COUNT=2"
            ),
            Seat("torchrun", 1, 2, 0, "n0", 1234, "launcher", "2"),
        ),
        (
            (
                "SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_LOCALID=1 SLURM_JOB_ID=10007"
                " SLURM_JOB_NODELIST=gpu[07-09,12],big1"
            ),
            Seat("Slurm", 3, 4, 1, "gpu07", 29507),
        ),
        (
            (
                "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0"
                " MASTER_ADDR=10.0.0.1"
            ),
            Seat("Open MPI", 0, 2, 0, "10.0.0.1", 29500),
        ),
        ("PMI_RANK=0 PMI_SIZE=1", Seat("PMI", 0, 1, 0, "localhost", 29500)),
        ("SLURM_PROCID=0 SLURM_NTASKS=1", Seat("Slurm", 0, 1, 0, "localhost", 29500)),
    ],
)
def test_the_rank_is_read_from_what_the_launcher_sets(environ: str, expected: Seat) -> None:
    assert seat(dict(pair.split("=", 1) for pair in environ.split())) == expected


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "no launcher has said"),
        ({"RANK": "0"}, "no launcher has said"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 is not below WORLD_SIZE=2"),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "are no numbers"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "MASTER_ADDR is not set"),
    ],
)
def test_without_a_rank_it_is_said_why(environ: Mapping[str, str], why: str) -> None:
    said = seat(environ)
    assert isinstance(said, str)
    assert why in said


# ---- bringing records to rank 0 ------------------------------------------------------------------


def test_rank_0_takes_the_records_of_those_that_know_its_word_and_of_nobody_else() -> None:
    collector = gather.Collector(3)
    codes: list[int | None] = []
    threads = [
        threading.Thread(
            target=lambda rank=rank, word=word: codes.append(
                gather.send("127.0.0.1", collector.port, word, {"rank": rank}, 5)
            )
        )
        for rank, word in ((1, collector.word), (2, "another word"), (7, collector.word))
    ]
    for thread in threads:
        thread.start()
    with socket.create_connection(("127.0.0.1", collector.port)) as rubbish:
        rubbish.sendall(b"GET / HTTP/1.1\r\n\r\n\n")
        assert rubbish.recv(10) == b""
    collector.wait(0.5)
    collector.dismiss(1)
    for thread in threads:
        thread.join()
    assert collector.records == {1: {"rank": 1}}
    assert sorted(codes, key=str) == [1, None, None]


def test_a_rank_that_cannot_reach_rank_0_is_told_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert gather.send("127.0.0.1", port, "word", {"rank": 1}, 1) is None


# ---- two hosts under torchrun --------------------------------------------------------------------


def under_torchrun(
    both: Hosts,
    folder: Path,
    meanwhile: Callable[[], None] = lambda: None,
    variables: Mapping[int, Mapping[str, str]] | None = None,
) -> list[tuple[int, str, str]]:
    """Start one rank on either host; return exit code and output of both launchers."""
    python = environments.base().root / "bin/python"
    slowness = trying.slowness()
    path = os.pathsep.join((str(environments.CHECKOUT), *OF_THIS))
    launchers = []
    for which in (0, 1):
        command = (
            *both.inside(which),
            *(str(python), "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"),
            *(f"--node-rank={which}", "--rdzv-backend=c10d", "--rdzv-id=t"),
            f"--local-addr={hosts.ADDRESSES[which]}",  # both have one name
            f"--rdzv-endpoint={hosts.ADDRESSES[0]}:{hosts.PORT}",
            *("-m", "torchdoctor", "all-reduce", "--worker", "--format", "json"),
            *("--timeout", str(18 * slowness)),
        )
        environ = environments.environ(
            folder, PYTHONPATH=path, TMPDIR=str(folder), **(variables or {}).get(which, {})
        )
        launchers.append(
            subprocess.Popen(
                command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    try:
        meanwhile()
        said = [launcher.communicate(timeout=LIMIT * slowness) for launcher in launchers]
    finally:
        for launcher in launchers:
            launcher.kill()
            launcher.communicate()
    assert not list(folder.glob("torchdoctor-*")), "the temporary folders are gone"
    return [
        (launcher.returncode, out.decode(), err.decode())
        for launcher, (out, err) in zip(launchers, said, strict=True)
    ]


def verdict(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)["data"]["all_reduce"]["verdict"]
    return found


@pytest.fixture
def both() -> Iterator[Hosts]:
    with hosts.two() as made:
        yield made


def kill_in_import(folder: Path, rank: int) -> None:
    """Kill the worker of *rank* while it imports torch."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for file in folder.glob(f"torchdoctor-*/all-reduce/rank{rank}.jsonl"):
            with contextlib.suppress(ValueError, OSError):
                events = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
                if events and events[-1]["stage"] == "import":
                    os.kill(next(e["pid"] for e in events if "pid" in e), signal.SIGKILL)
                    return
        time.sleep(0.02)
    raise AssertionError("it never came to the import")


@pytest.mark.slow
@hosts.needs_hosts
def test_two_hosts_under_torchrun_are_well_and_rank_0_alone_says_so(
    both: Hosts, tmp_path: Path
) -> None:
    (first, text, _), (second, nothing, _) = under_torchrun(both, tmp_path)
    assert (first, second) == (0, 0)
    assert verdict(text) == {"ok": True}
    assert [r["rank"] for r in json.loads(text)["data"]["all_reduce"]["ranks"]] == [0, 1]
    assert nothing == ""


@pytest.mark.slow
@hosts.needs_hosts
def test_a_rank_that_dies_on_the_other_host_is_named_on_both(both: Hosts, tmp_path: Path) -> None:
    (first, text, _), (second, other, _) = under_torchrun(
        both, tmp_path, lambda: kill_in_import(tmp_path, 1)
    )
    assert first != 0 != second
    assert verdict(text)["cause"] == "absent"
    assert verdict(text)["rank"] == 1
    assert {k: verdict(other)[k] for k in ("cause", "stage", "rank")} == {
        "cause": "died",
        "stage": "import",
        "rank": 1,
    }


@pytest.mark.slow
@hosts.needs_hosts
def test_an_interface_that_is_wrong_on_one_host_is_named_by_rank_0(
    both: Hosts, tmp_path: Path
) -> None:
    (first, text, _), (second, nothing, _) = under_torchrun(
        both, tmp_path, variables={1: {"GLOO_SOCKET_IFNAME": "bogus0"}}
    )
    assert first != 0 != second
    assert {k: verdict(text)[k] for k in ("cause", "stage", "rank")} == {
        "cause": "interface",
        "stage": "facts",
        "rank": 1,
    }
    assert nothing == ""


@pytest.mark.slow
@hosts.needs_nft
def test_ports_that_a_firewall_drops_are_told_as_a_link_on_both(
    both: Hosts, tmp_path: Path
) -> None:
    for which in (0, 1):
        both.firewall(
            which,
            "ct state established,related accept",
            f"tcp dport {hosts.PORT} accept",
            "iif != lo tcp flags syn drop",
        )
    (first, text, _), (second, other, _) = under_torchrun(both, tmp_path)
    assert first != 0 != second
    # Rank 0 cannot know whether rank 1 was started; rank 1 knows that it cannot come.
    assert [verdict(said)["cause"] for said in (text, other)] == ["absent", "link-timeout"]
    assert [verdict(said)["link"] for said in (text, other)] == ["0-1", "0-1"]
