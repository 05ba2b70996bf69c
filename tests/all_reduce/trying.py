"""Run a fault as the product would run an all_reduce, and see that nothing is left of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests import environments
from tests.all_reduce import hosts
from tests.all_reduce.faults import LAST_LINES, PARTS, Fault
from tests.all_reduce.hosts import Hosts
from torchdoctor.distributed import session
from torchdoctor.distributed.blame import Verdict, blame
from torchdoctor.distributed.stages import Limits
from torchdoctor.distributed.supervisor import Job, Place
from torchdoctor.facts import AllReduce
from torchdoctor.resource import read_text

USUAL_IMPORT = 3.0
"""Seconds that an import of torch takes alone, where the limits below are long enough."""
SHARED = Path("/dev/shm")  # noqa: S108 - looked at


@dataclass(frozen=True)
class Seen:
    """What came of a run."""

    run: AllReduce
    verdict: Verdict | None
    seconds: float
    data: Mapping[str, object]
    """The record itself."""
    left: tuple[str, ...]
    """Processes, shared memory and temporary files that were not there before."""


@cache
def slowness() -> float:
    """Return how many times as long as usual this machine takes now, by an import that is timed."""
    start = time.monotonic()
    command = (str(environments.base().root / "bin/python"), "-c", "import torch")
    subprocess.run(command, check=True, timeout=300)
    return max(1.0, (time.monotonic() - start) / USUAL_IMPORT)


def limits(world: int) -> Limits:
    """Return the limits for *world* ranks on this machine; two runs have to fit into the whole."""
    importing = (30.0 + 5.0 * world) * slowness()
    return Limits(whole=2 * importing + 30.0 * slowness(), stage=6.0, importing=importing)


def far(world: int) -> tuple[int, ...]:
    """Return the ranks that are on the second of two hosts."""
    return tuple(range(world // 2, world))


def run(fault: Fault, world: int, folder: Path) -> Seen:
    """Run *fault* on *world* ranks; *folder* is empty."""
    before = _shared()
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    joined: AbstractContextManager[Hosts | None] = (
        hosts.two(late=fault.late) if fault.on_hosts else nullcontext(None)
    )
    with joined as both, fault.around() as port:
        if both is not None and fault.befalls is not None:
            fault.befalls(both)
        job = Job(
            places=dict(_places(fault, world, both, folder)),
            world=world,
            limits=limits(world),
            host=hosts.ADDRESSES[0] if both else "127.0.0.1",
            port=hosts.PORT if both else port,
            source=_source(fault, world),
        )
        start = time.monotonic()
        answer = session.of(job, folder)
        seconds = time.monotonic() - start
        until = time.monotonic() + 1.0  # what was killed takes a moment to be gone
        while (
            left := (
                *_processes(folder),
                *sorted(_shared() - before),
                *map(str, temporary.iterdir()),
            )
        ) and time.monotonic() < until:
            time.sleep(0.02)
    record = session.read(answer.data)
    return Seen(record, blame(record), seconds, answer.data, left)


def _source(fault: Fault, world: int) -> str:
    whole = read_text("probes", "all_reduce.py")
    assert whole.count(LAST_LINES) == 1
    # A fault of the second host is made by one of the ranks that are there.
    change = fault.source.replace("RANK == -1", f"RANK == {far(world)[0]}")
    return whole.replace(LAST_LINES, f"{PARTS}\n{change}\n\n{LAST_LINES}")


def _places(
    fault: Fault, world: int, both: Hosts | None, folder: Path
) -> Iterator[tuple[int, Place]]:
    python = str(environments.base().root / "bin/python")
    environ = environments.environ(folder, OMP_NUM_THREADS="1", TMPDIR=str(folder / "temporary"))
    for rank in range(world):
        inside = both.inside(int(rank in far(world))) if both else ()
        start = (*inside, *fault.before.get(rank, ()), fault.python.get(rank, python), "-B")
        yield rank, Place(start, {**environ, **fault.variables.get(rank, {})})


def _shared() -> set[str]:
    return {path.name for path in SHARED.iterdir()} if SHARED.is_dir() else set()


def _processes(folder: Path) -> Iterator[str]:
    """Yield the processes that work in *folder*: all ranks name it in their command."""
    needle = os.fsencode(folder)
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            if needle in command and entry.name != str(os.getpid()):
                yield f"{entry.name} {command[:200]!r}"
