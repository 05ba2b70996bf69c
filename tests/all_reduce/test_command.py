"""``torchdoctor all-reduce`` and ``check --all-reduce``, as a user starts them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.test_cli import Ran
from torchdoctor.distributed.stages import STAGES


def python() -> str:
    return str(environments.base().root / "bin/python")


def run(*words: str, cwd: Path, **environ: str) -> Ran:
    """Run the command, whose temporary files are gone afterwards."""
    temporary = cwd / "temporary"
    temporary.mkdir(exist_ok=True)
    ran = Ran(*words, cwd=cwd, **{"TMPDIR": str(temporary), **environ})  # type: ignore[arg-type]
    assert list(temporary.iterdir()) == []
    return ran


def checks(document: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["outcome"] for check in document["checks"]}


def test_two_healthy_ranks_over_gloo_are_well_and_nccl_stays_unknown(tmp_path: Path) -> None:
    ran = run("all-reduce", "--python", python(), "--format", "json", cwd=tmp_path)
    document: dict[str, Any] = ran.json
    assert (ran.code, document["verdict"], document["findings"]) == (0, "healthy", [])
    assert checks(document) == {"all-reduce": "clear", "nccl-run": "unknown"}
    tried = document["data"]["all_reduce"]
    assert tried["verdict"] == {"ok": True}
    for rank in tried["ranks"]:
        own = [stage for stage in STAGES if stage != ("tcp" if rank["rank"] == 0 else "port-bind")]
        ok = [e["stage"] for e in rank["events"] if e["ev"] == "ok"]
        assert ok == own
    (measured,) = [e for e in tried["ranks"][0]["events"] if "busbw" in e]
    assert measured["busbw"] == pytest.approx(measured["algbw"], rel=0.01)  # 2(n-1)/n is 1


def test_an_environment_without_torch_is_told_so_in_seconds(tmp_path: Path) -> None:
    bare = environments.bare(tmp_path / "env")
    start = time.monotonic()
    ran = run("all-reduce", "--python", str(bare.python), "--format", "json", cwd=tmp_path)
    assert time.monotonic() - start < 15
    document: dict[str, Any] = ran.json
    assert (ran.code, document["verdict"]) == (1, "broken")
    (finding,) = document["findings"]
    assert finding["name"] == "torch-import-fails"
    assert "No module named 'torch'" in finding["summary"]
    assert finding["where"]["stage"] == "import"
    assert document["plan"][0]["verify"] == ["torchdoctor all-reduce"]


def test_the_table_for_people_shows_where_it_failed(tmp_path: Path) -> None:
    bare = environments.bare(tmp_path / "env")
    ran = run("all-reduce", "--python", str(bare.python), cwd=tmp_path)
    rows = ran.out.splitlines()
    (here,) = [row for row in rows if row.endswith("<- here")]
    assert here.split()[:2] == ["import", "failed"]
    assert any(row.split() == ["stage", "rank", "0", "rank", "1"] for row in rows)


def test_the_port_that_is_given_is_the_one_that_is_taken(tmp_path: Path) -> None:
    bare = environments.bare(tmp_path / "env")
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = str(stranger.getsockname()[1])
        ran = run(
            *("all-reduce", "--python", str(bare.python), "--format", "json"),
            cwd=tmp_path,
            MASTER_PORT=port,
        )
    document: dict[str, Any] = ran.json
    assert document["findings"][0]["name"] == "rendezvous-port-in-use"
    assert document["plan"][0]["commands"]["bash"] == [f"ss -ltnp 'sport = :{port}'"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--nproc", "0"), "from 1 to"),
        (("--nproc", "many"), "invalid"),
        (("--timeout", "0"), "no number of seconds"),
        (("--backend", "mpi"), "invalid choice"),
        (("--python", "/nowhere"), "/nowhere"),
        (("--worker",), "no launcher has said"),
    ],
)
def test_wrong_usage_is_one_line(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    ran = run("all-reduce", *words, cwd=tmp_path)
    assert why in ran.complaint


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_every_rank(number: int, tmp_path: Path) -> None:
    mark = f"H_{os.urandom(8).hex()}"
    environ = os.environ | {mark: "1", "PYTHONPATH": str(environments.CHECKOUT)}
    environ["TMPDIR"] = str(tmp_path)
    command = (sys.executable, "-m", "torchdoctor", "all-reduce", "--python", python())
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as running:
        until = time.monotonic() + 30
        while not list(tmp_path.glob("*/all-reduce/*/rank1.jsonl")):
            assert time.monotonic() < until
            time.sleep(0.02)
        running.send_signal(number)
        running.wait(20)
    time.sleep(0.2)
    assert list(environments.marked(mark)) == []
    assert list(tmp_path.iterdir()) == []


# ---- the slow tier ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_check_may_try_an_all_reduce_too(tmp_path: Path) -> None:
    ran = run("check", "--all-reduce=2", "--python", python(), "--format", "json", cwd=tmp_path)
    document: dict[str, Any] = ran.json
    assert ran.code == 0
    outcomes = checks(document)
    assert (outcomes["all-reduce"], outcomes["nccl-run"]) == ("clear", "unknown")
    assert document["data"]["all_reduce"]["world"] == 2
    assert not document["findings"] or document["verdict"] == "healthy"


@pytest.mark.slow
def test_a_wrong_interface_is_cured_by_the_plan(tmp_path: Path) -> None:
    ran = run(
        *("check", "--all-reduce", "--only", "all-reduce", "--python", python()),
        *("--format", "json"),
        cwd=tmp_path,
        GLOO_SOCKET_IFNAME="bogus0",
    )
    document: dict[str, Any] = ran.json
    assert ran.code == 1
    assert [f["name"] for f in document["findings"]] == ["wrong-socket-ifname"]
    assert document["plan"][0]["commands"]["bash"] == ["unset GLOO_SOCKET_IFNAME"]
    assert document["plan"][0]["verify"] == [
        "torchdoctor check --only wrong-socket-ifname --all-reduce"
    ]
    assert document["after_plan"]["findings"] == []


@pytest.mark.slow
def test_a_sweep_is_shown_as_a_plot_and_strict_makes_the_unknown_count(tmp_path: Path) -> None:
    ran = run("all-reduce", "--sweep", "--strict", "--python", python(), cwd=tmp_path)
    assert ran.code == 3
    (largest,) = [row for row in ran.out.splitlines() if row.split()[:2] == ["64", "MiB"]]
    assert "#" in largest
    assert "NCCL was not" in ran.out


@pytest.mark.slow
def test_the_block_to_send_on_has_the_tables_and_names_no_host(tmp_path: Path) -> None:
    ran = run("all-reduce", "--format", "markdown", "--python", python(), cwd=tmp_path)
    assert ran.code == 0
    assert "communicator" in ran.out
    assert "```text" in ran.out
    assert json.dumps(socket.gethostname()) not in ran.out
