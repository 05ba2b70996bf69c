"""What is tried again when an all_reduce fails, with small programs as ranks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.all_reduce.test_supervisor import BEGIN, DONE
from torchdoctor.child import Run
from torchdoctor.distributed import session, verdict
from torchdoctor.distributed.blame import blame
from torchdoctor.distributed.stages import Limits
from torchdoctor.distributed.supervisor import Job, Place
from torchdoctor.facts import AllReduce, Symptom, Unknown
from torchdoctor.reading import all_reduce

NCCL_HANGS_UNLESS = """
gloo = OPTIONS["backend"] == "gloo"
say("device", "fact", backend="gloo" if gloo else "nccl", device="cuda:%d" % RANK)
if not (gloo or os.environ.get("{variable}") == "{value}"):
    say("all-reduce", "call")
    wait_for_ever()
"""


def run(body: str, folder: Path, limits: Limits) -> AllReduce:
    places = {rank: Place((sys.executable, "-I"), dict(os.environ)) for rank in range(2)}
    job = Job(places, 2, limits, source=f"{BEGIN}\n{body}\n{DONE}\n")
    answer = session.of(job, folder)
    assert answer.seconds < limits.whole + 2
    known = all_reduce.read(answer)["all_reduce"]
    assert isinstance(known, AllReduce)
    return known


CHANGES = ("NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1", "NCCL_IB_DISABLE=1", "NCCL_SOCKET_IFNAME=lo")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "named"),
    list(
        zip(CHANGES, ("traffic between", "shared memory", "InfiniBand", "interface"), strict=True)
    ),
)
def test_the_first_change_with_which_nccl_works_names_the_transport(
    change: str, named: str, tmp_path: Path
) -> None:
    variable, value = change.split("=")
    body = NCCL_HANGS_UNLESS.format(variable=variable, value=value)
    found = run(body, tmp_path, Limits(whole=60.0, stage=0.3, importing=5.0))
    assert list(found.again) == [
        *("TORCH_DISTRIBUTED_DEBUG=DETAIL", "gloo"),
        *CHANGES[: CHANGES.index(change) + 1],
    ]
    assert blame(found.again["gloo"]) is None
    finding = verdict.transport(found)
    assert finding is not None
    assert f"works with {change}" in finding.summary
    assert named in finding.summary
    assert finding.summary.endswith("gloo works as it is, so it is not the network.")


@pytest.mark.slow
def test_where_nothing_helps_all_of_it_is_tried_and_no_transport_is_named(tmp_path: Path) -> None:
    body = NCCL_HANGS_UNLESS.format(variable="NCCL_NOTHING", value="1")
    found = run(body, tmp_path, Limits(whole=60.0, stage=0.3, importing=5.0))
    assert list(found.again)[2:] == list(CHANGES)
    assert verdict.transport(found) is None
    assert verdict.untold(found).endswith(
        "gloo works, so that processes, ports and the network are right"
    )


CRASHES_OVER_SHM = """
gloo = OPTIONS["backend"] == "gloo"
say("device", "fact", backend="gloo" if gloo else "nccl", device="cuda:%d" % RANK)
if RANK and not (gloo or os.environ.get("NCCL_SHM_DISABLE") == "1"):
    say("all-reduce", "call")
    os.kill(os.getpid(), signal.{signal})
if not gloo and os.environ.get("NCCL_SHM_DISABLE") != "1":
    say("all-reduce", "call"); wait_for_ever()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("signal", "tried"), [("SIGBUS", True), ("SIGKILL", False)])
def test_a_crash_inside_nccl_is_tried_without_its_transports_and_a_kill_is_not(
    signal: str, *, tried: bool, tmp_path: Path
) -> None:
    body = CRASHES_OVER_SHM.format(signal=signal)
    found = run(body, tmp_path, Limits(whole=60.0, stage=0.3, importing=5.0))
    again = ["gloo", "NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1"]
    assert list(found.again) == (again if tried else [])


def test_nothing_is_begun_for_which_no_time_is_left(tmp_path: Path) -> None:
    body = NCCL_HANGS_UNLESS.format(variable="NCCL_SHM_DISABLE", value="1")
    found = run(body, tmp_path, Limits(whole=5.0, stage=0.3, importing=5.0))
    assert found.again == {}


LOG = (
    "vm:7:7 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\n"
    "vm:7:9 [0] ibvwrap.c:115 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"
    "\nvm:7:9 [0] NCCL INFO transport/net_ib.cc:1024 -> 2\n"
)
FAILED_IN_NCCL = """
say("device", "fact", backend="nccl", device="cuda:%d" % RANK)
open(os.environ["NCCL_DEBUG_FILE"], "w").write({log!r})
say("communicator", "error", type="DistBackendError", message="NCCL error in: "
    "ProcessGroupNCCL.cpp:3690, unhandled system error (run with NCCL_DEBUG=INFO for details)")
os._exit(4)
"""


def test_what_failed_in_nccl_is_told_by_the_log_that_it_wrote(tmp_path: Path) -> None:
    limits = Limits(whole=4.0, stage=1.0, importing=5.0)  # for one run
    job = Job(
        {0: Place((sys.executable, "-I"), dict(os.environ))},
        1,
        limits,
        source=f"{BEGIN}\n{FAILED_IN_NCCL.format(log=LOG)}",
    )
    known = all_reduce.read(session.of(job, tmp_path), (Symptom("import-failed"),))
    symptoms = known["symptoms"]
    assert isinstance(symptoms, tuple)
    assert [s.name for s in symptoms] == ["import-failed", "nccl-interface", "ib-memory-refused"]
    assert symptoms[-1].source == "NCCL's log of rank 0"
    assert "NCCL WARN Call to ibv_reg_mr" in symptoms[-1].text


def test_a_run_that_is_well_tells_nothing_of_its_logs(tmp_path: Path) -> None:
    body = f"open(os.environ['NCCL_DEBUG_FILE'], 'w').write({LOG!r})"
    job = Job(
        {0: Place((sys.executable, "-I"), dict(os.environ))},
        1,
        Limits(whole=9.0, stage=1.0, importing=5.0),
        source=f"{BEGIN}\n{body}\n{DONE}",
    )
    assert set(all_reduce.read(session.of(job, tmp_path))) == {"all_reduce"}


def test_a_rank_that_says_itself_what_is_wrong_is_not_tried_again(tmp_path: Path) -> None:
    body = "say('facts', 'error', why='interface', message='x'); os._exit(4)"
    found = run(body, tmp_path, Limits(whole=30.0, stage=1.0, importing=5.0))
    assert found.again == {}


def test_a_run_that_was_cut_off_or_damaged_is_unknown() -> None:
    damaged: tuple[dict[str, object], ...] = (
        {},
        {"done": True},
        {"done": True, "world": 2, "ranks": "none"},
        {"done": True, "world": 2, "ranks": [1]},
        {"done": True, "world": -1, "ranks": []},
        {"done": True, "world": True, "ranks": []},
        {"done": True, "world": 1, "ranks": [{"rank": 0, "events": None}]},
        {"done": True, "world": 1, "ranks": [], "again": []},
    )
    for data in damaged:
        known = all_reduce.read(Run((), "answered", data=data))["all_reduce"]
        assert isinstance(known, Unknown), data


def test_fingerprints_are_read_from_what_torch_raises() -> None:
    said = (
        "Detected mismatch between collectives on ranks. Rank 0 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=0, OpType=ALLREDUCE, TensorShape=[4096], "
        "TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default))), but Rank 1 "
        "is running collective: CollectiveFingerPrint(SequenceNumber=0, OpType=BROADCAST, "
        "TensorShape=[4096], TensorDtypes=Double).Collectives differ"
    )
    event = {"stage": "all-reduce", "ev": "error", "t": 1, "type": "RuntimeError", "message": said}
    record = all_reduce.record({"world": 1, "ranks": [{"rank": 0, "events": [event]}]})
    assert record.fingerprints == {0: "ALLREDUCE [4096] Float", 1: "BROADCAST [4096] Double"}


ALONE = """
say("device", "fact", backend="nccl", device="cuda:0")
say("facts", "fact", nccl="{nccl}")
if OPTIONS["world"] == 2 and not (OPTIONS["share"] and os.environ["RANK"] == str(RANK)):
    os._exit(3)
"""


@pytest.mark.parametrize(("nccl", "tried"), [("23003", True), ("22809", False), ("", False)])
def test_two_ranks_share_one_gpu_where_its_nccl_allows_it(
    nccl: str, *, tried: bool, tmp_path: Path
) -> None:
    source = f"{BEGIN}\n{ALONE.format(nccl=nccl)}\n{DONE}\n"
    place = Place((sys.executable, "-I"), dict(os.environ))
    job = Job({0: place}, 1, Limits(whole=30.0, stage=1.0, importing=5.0), source=source)
    answer = session.two_on_one_gpu(job, session.of(job, tmp_path), tmp_path)
    again = session.read(answer.data).again
    assert list(again) == (["NCCL_MULTI_RANK_GPU_ENABLE=1"] if tried else [])
    assert all(blame(other) is None for other in again.values())
