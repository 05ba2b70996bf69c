"""The ranks of a job are found among processes, and only an armed one may be signalled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from torchdoctor.hang import processes, signs
from torchdoctor.hang.records import Kernel
from torchdoctor.model import DoctorError

TORCHRUN = {"MASTER_ADDR": "node0", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}


class Proc:
    """A folder as /proc is."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(
        self,
        pid: int,
        parent: int = 1,
        environ: Mapping[str, str] | None = None,
        *,
        state: str = "S",
        started: int = 0,
        caught: int = 0,
        readable: bool = True,
    ) -> None:
        place = self.root / str(pid)
        (place / "task" / str(pid)).mkdir(parents=True)
        (place / "fd").mkdir()
        fields = [state, str(parent), *["0"] * 9, "7", "3", *["0"] * 6, str(started or pid), "0"]
        stat = f"{pid} (py) thon) {' '.join(fields)}\n"
        (place / "stat").write_text(stat)
        (place / "task" / str(pid) / "stat").write_text(stat)
        (place / "task" / str(pid) / "status").write_text("voluntary_ctxt_switches:\t41\n")
        (place / "status").write_text(f"NSpid:\t{pid}\nSigCgt:\t{caught:016x}\n")
        (place / "wchan").write_text("futex_do_wait")
        (place / "syscall").write_text("202 0x7f 0x0\n")
        if readable:
            pairs = (f"{name}={value}".encode() for name, value in (environ or {}).items())
            (place / "environ").write_bytes(b"\0".join(pairs) + b"\0")

    def rank(self, pid: int, parent: int, rank: int, **more: str) -> None:
        own = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
        self.add(pid, parent, TORCHRUN | own | {"LOCAL_WORLD_SIZE": "2"} | more)

    def find(self, pid: int) -> processes.Found:
        return processes.find(pid, self.root)


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path / "proc")


def pids(found: processes.Found) -> dict[int, int]:
    return {rank: process.pid for rank, process in found.ranks.items()}


@pytest.fixture
def torchrun(proc: Proc) -> Proc:
    proc.add(10, 5)
    proc.rank(11, 10, 0)
    proc.rank(12, 10, 1)
    proc.rank(20, 11, 0)  # a worker of the loader of rank 0 has its variables, too
    proc.rank(21, 20, 0)
    proc.rank(30, 29, 0, MASTER_PORT="29501")  # another job
    return proc


@pytest.mark.parametrize("pid", [10, 11, 12, 20])
def test_ranks_are_found_from_the_launcher_and_from_any_of_them(torchrun: Proc, pid: int) -> None:
    found = torchrun.find(pid)
    assert pids(found) == {0: 11, 1: 12}
    assert (found.world, found.lacking) == (2, ())


def test_another_job_on_the_machine_is_another_job(torchrun: Proc) -> None:
    assert pids(torchrun.find(30)) == {0: 30}


def test_a_rank_that_is_gone_is_lacking_though_its_loader_is_still_there(proc: Proc) -> None:
    proc.add(10, 5)
    proc.rank(11, 10, 0)
    proc.rank(22, 1, 1)  # what rank 1 has started, and init has inherited
    found = proc.find(11)
    assert (pids(found), found.lacking) == ({0: 11}, (1,))


def test_ranks_of_other_machines_are_not_lacking(proc: Proc) -> None:
    proc.rank(11, 10, 0, LOCAL_WORLD_SIZE="1")
    assert proc.find(11).lacking == ()


def test_the_second_of_two_machines_has_its_own_ranks(proc: Proc) -> None:
    own = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}
    proc.add(11, 10, TORCHRUN | own | {"RANK": "3", "LOCAL_RANK": "1"})
    assert proc.find(11).lacking == (2,)


def test_slurm_and_mpi_give_ranks_other_names(proc: Proc) -> None:
    for rank in (0, 1):
        own = {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "2", "SLURM_LOCALID": str(rank)}
        proc.add(40 + rank, 39, own | {"SLURM_JOB_ID": "7"})
    assert pids(proc.find(40)) == {0: 40, 1: 41}


@pytest.mark.parametrize(
    ("pid", "said"), [(99, "no process 99"), (50, "may not be looked at"), (51, "is no rank")]
)
def test_what_cannot_be_looked_at_is_told(proc: Proc, pid: int, said: str) -> None:
    proc.add(50, 1, readable=False)
    proc.add(51, 1)
    with pytest.raises(DoctorError, match=said):
        proc.find(pid)


def test_a_system_without_proc_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DoctorError, match="does not show its processes"):
        processes.find(1, tmp_path / "none")


def test_hostile_variables_are_no_ranks(proc: Proc) -> None:
    proc.add(11, 10, {"RANK": "-1", "WORLD_SIZE": "two"})
    with pytest.raises(DoctorError, match="is no rank"):
        proc.find(11)


def test_the_kernel_says_how_a_process_moved(proc: Proc) -> None:
    proc.add(11)
    before = processes.look(11, proc.root)
    assert before[1].switches == 41
    seen = processes.kernel(11, proc.root, before)
    assert seen == Kernel("S", "futex_do_wait", 202, seen.seconds)
    gone = processes.kernel(99, proc.root)
    assert gone.gone


# ---- signs --------------------------------------------------------------------------------------


def sign(proc: Proc, folder: Path, *, pid: int, rank: int = 0, started: int | None = None) -> None:
    """Leave the sign of an armed process."""
    folder.mkdir(exist_ok=True)
    stack = folder / signs.STACK.format(rank=rank)
    stack.touch()
    (proc.root / str(pid) / "fd" / "3").symlink_to(stack)
    told = {
        "schema": signs.SCHEMA,
        "rank": rank,
        "world": 2,
        "pid": pid,
        "started": pid if started is None else started,
        "signal": 10,
        "at": 1.0,
    }
    (folder / signs.BEAT.format(rank=rank)).write_text(json.dumps(told))


CAUGHT = 1 << 9
"""SIGUSR1 among the signals that are caught."""


def test_an_armed_process_is_known_by_the_file_it_keeps_open(proc: Proc, tmp_path: Path) -> None:
    proc.add(11, caught=CAUGHT)
    sign(proc, tmp_path / "armed", pid=11)
    found = signs.of_process(11, proc.root)
    assert found is not None
    assert found.folder == tmp_path / "armed"
    assert signs.may_be_signalled(found, 11, proc.root)


def test_an_armed_process_in_a_container_is_found_by_its_own_root(
    proc: Proc, tmp_path: Path
) -> None:
    proc.add(11, caught=CAUGHT)
    sign(proc, tmp_path / "armed", pid=11)
    inside = proc.root / "11/root" / (tmp_path / "armed").relative_to("/")
    inside.parent.mkdir(parents=True)
    (tmp_path / "armed").rename(inside)
    found = signs.of_process(11, proc.root)
    assert found is not None
    assert found.folder == inside


def test_a_process_that_does_not_catch_the_signal_is_never_signalled(
    proc: Proc, tmp_path: Path
) -> None:
    proc.add(11, caught=~CAUGHT & 0xFFFF)
    sign(proc, tmp_path / "armed", pid=11)
    found = signs.of_process(11, proc.root)
    assert found is not None
    assert not signs.may_be_signalled(found, 11, proc.root)


def test_a_child_that_inherited_the_file_is_not_armed(proc: Proc, tmp_path: Path) -> None:
    proc.add(11, caught=CAUGHT)
    sign(proc, tmp_path / "armed", pid=11)
    proc.add(12, 11, caught=CAUGHT)
    (proc.root / "12/fd/3").symlink_to(tmp_path / "armed" / signs.STACK.format(rank=0))
    assert signs.of_process(12, proc.root) is None


def test_a_number_that_another_process_has_now_is_not_armed(proc: Proc, tmp_path: Path) -> None:
    proc.add(11, caught=CAUGHT, started=500)
    sign(proc, tmp_path / "armed", pid=11, started=400)
    assert signs.of_process(11, proc.root) is None


def test_ranks_without_variables_are_found_by_their_signs(proc: Proc, tmp_path: Path) -> None:
    proc.add(10, 5)
    for rank, pid in enumerate((11, 12)):
        proc.add(pid, 10)
        sign(proc, tmp_path / "armed", pid=pid, rank=rank)
    for pid in (10, 12):
        found = proc.find(pid)
        assert (pids(found), found.world) == ({0: 11, 1: 12}, 2)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "x"}', '{"schema": "torchdoctor.armed/1", "rank": -1}']
)
def test_a_file_that_is_no_sign_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "torchdoctor-rank0.json"
    path.write_text(text)
    assert signs.of_file(path) is None
