"""Real jobs over gloo that hang, for the tests: started, awaited up to their fault, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests import environments
from torchdoctor.hang import blame, looking, processes
from torchdoctor.hang.records import Job
from torchdoctor.model import Finding

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("train.py")
STARTS = 180.0
"""Seconds that an import of torch may take on a busy machine."""


@dataclass(frozen=True)
class Running:
    """A job that runs, up to its fault."""

    folder: Path
    ranks: Mapping[int, int]
    """Rank -> its process."""
    launcher: int
    """The process that started them."""
    output: Path

    @property
    def armed(self) -> Path:
        return self.folder / "armed"

    def alive(self, rank: int) -> bool:
        """Tell whether a rank still runs."""
        try:
            state = Path(f"/proc/{self.ranks[rank]}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        return state[0] != "Z"

    def look(self, *, pid: int | None = None, watch: float = 2.0) -> tuple[Job, blame.Verdict]:
        """Return what is seen of it without py-spy, and the verdict."""
        wish = looking.Wish(watch, os.environ, py_spy=False, ras=False)
        job = looking.live(pid or self.launcher, wish)
        return job, blame.blame(job)


def line_of(text: str) -> int:
    """Return the number of the line of the script that has *text*."""
    lines = SCRIPT.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@contextlib.contextmanager
def running(
    fault: str,
    folder: Path,
    *,
    ranks: int = 2,
    launcher: str = "torchrun",
    armed: bool = True,
    settle: float = 1.5,
) -> Iterator[Running]:
    """Start a job with *fault*, and give it once all ranks are at the fault; end it afterwards."""
    python = str(environments.base().root / "bin/python")
    output = folder / "output.txt"
    words = [str(SCRIPT), fault, str(folder), *(["armed"] if armed else [])]
    environ = environments.environ(folder) | {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    started: list[subprocess.Popen[bytes]] = []
    with output.open("wb") as file:
        if launcher == "torchrun":
            own = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
            commands = [([python, *own, *words], environ)]
        else:
            port = str(_free_port())
            each = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
            commands = [
                ([python, *words], environ | each | {"RANK": str(n), "LOCAL_RANK": str(n)})
                for n in range(ranks)
            ]
        for command, variables in commands:
            started.append(
                subprocess.Popen(
                    command, stdout=file, stderr=file, env=variables, start_new_session=True
                )
            )
    try:
        _until_ready(folder, ranks, output)
        time.sleep(settle)
        if launcher == "torchrun":
            found = processes.find(started[0].pid)
            pids = {rank: process.pid for rank, process in found.ranks.items()}
        else:
            pids = {number: one.pid for number, one in enumerate(started)}
        running = (one.pid for one in started if one.poll() is None)
        yield Running(folder, pids, next(running, started[0].pid), output)
    finally:
        for one in started:
            _end(one)


def finding_of(job: Job, verdict: blame.Verdict) -> Finding:
    """Return the finding of a verdict, which has to be one."""
    from torchdoctor.hang import verdict as words  # noqa: PLC0415 - a name that is taken above

    found = words.finding(verdict, job)
    assert found is not None
    assert "?" not in found.summary
    return found


def _until_ready(folder: Path, ranks: int, output: Path) -> None:
    until = time.monotonic() + STARTS
    while not all((folder / f"ready{rank}").exists() for rank in range(ranks)):
        assert time.monotonic() < until, output.read_text("utf-8", "replace")[-2000:]
        time.sleep(0.1)


def _end(one: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started: torchrun's ranks have groups of their own."""
    children = processes._family(one.pid, processes.processes())  # noqa: SLF001
    for pid in (*(child.pid for child in children), one.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    one.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
