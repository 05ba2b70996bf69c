"""One all_reduce as it was asked for, and what is tried again when it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torchdoctor.child import Run
from torchdoctor.distributed import gather, supervisor
from torchdoctor.distributed.stages import MARGIN, Limits
from torchdoctor.distributed.supervisor import Job, Place

if TYPE_CHECKING:
    from torchdoctor.distributed.blame import Verdict
    from torchdoctor.distributed.launcher import Seat
    from torchdoctor.facts import AllReduce

DETAIL = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
"""torch then compares what the ranks call, and names both."""
WITHOUT = (
    {"NCCL_P2P_DISABLE": "1"},
    {"NCCL_SHM_DISABLE": "1"},
    {"NCCL_IB_DISABLE": "1"},
    {"NCCL_SOCKET_IFNAME": "lo"},
)
FIRST_DEADLINE = 5.0
"""Seconds that have to be left for another try to be worth beginning."""
TALKATIVE = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,ENV,BOOTSTRAP,NET,P2P,SHM",
    "NCCL_SOCKET_RETRY_CNT": "5",  # else a refused connection is tried for a minute
    "TORCH_FR_BUFFER_SIZE": "2000",
}
"""What makes NCCL tell what it does, into a file for each rank; what the user has set stays."""
SHARES_FROM = 23003
"""NCCL 2.30.3 is the first that lets ranks share a GPU."""
SHARED = {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
PATIENCE = 10.0
"""Seconds that rank 0 may take to judge."""
OF_TRANSPORTS = ("stuck", "late", "raised", "link-lost", "wrong-data")
"""Causes behind which a transport of NCCL may be."""
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS")
COLLECTIVE = ("all-reduce", "verify", "barrier")


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for. ``ranks``: None for as many as suit the machine."""

    ranks: int | None = None
    backend: str = "auto"
    device: str = "auto"
    sweep: bool = False
    limits: Limits = field(default_factory=Limits)


def run(wish: Wish, python: str, environ: Mapping[str, str], folder: Path) -> Run:
    """Try *wish* with the interpreter *python*, and return what there was to see.

    *environ* is that of the ranks; *folder* is empty and ours. MASTER_ADDR and MASTER_PORT are
    honoured. Never raises for what a rank does.
    """
    gpus = gpus_here()
    count = wish.ranks or (1 if gpus == 1 and wish.backend != "gloo" else 2)
    port = environ.get("MASTER_PORT", "")
    job = Job(
        places={
            rank: Place((python, "-B"), _environ(environ, rank, count, gpus=gpus > 0))
            for rank in range(count)
        },
        world=count,
        limits=wish.limits,
        host=environ.get("MASTER_ADDR") or "127.0.0.1",
        port=int(port) if port.isdecimal() else 0,
        backend=wish.backend,
        device=wish.device,
        sweep=wish.sweep,
    )
    answer = of(job, folder)
    return two_on_one_gpu(job, answer, folder) if gpus == 1 and wish.ranks is None else answer


def two_on_one_gpu(job: Job, alone: Run, folder: Path) -> Run:
    """Return *alone*, one rank that was well, with two ranks on the same GPU tried after it.

    From 2.30.3 on NCCL allows that to whoever asks for it; what it shows is that two processes
    meet in NCCL, not what is between GPUs.
    """
    from torchdoctor.distributed.blame import blame, fact  # noqa: PLC0415 - as in of()

    found = read(alone.data)
    loaded = next((str(fact(rank, "facts", "nccl") or "") for rank in found.ranks), "")
    left = job.limits.whole - alone.seconds
    well = blame(found) is None and loaded.isdecimal() and int(loaded) >= SHARES_FROM
    if not well or left < max(FIRST_DEADLINE, job.limits.stage):
        return alone
    places = {
        rank: Place(job.places[0].python, _as_rank(job.places[0].environ, rank, 2) | SHARED)
        for rank in range(2)
    }
    limits = replace(job.limits, whole=left)
    two = replace(job, places=places, world=2, share=True, limits=limits)
    again = {"NCCL_MULTI_RANK_GPU_ENABLE=1": _once(two, folder / "shared")}
    return replace(alone, data={**alone.data, "again": again})


def in_seat(
    seat: Seat, wish: Wish, python: str, environ: Mapping[str, str], folder: Path
) -> tuple[Run | None, Callable[[int], int]]:
    """Be one rank of those that a launcher started; return what there is to judge here.

    For rank 0 that is what all ranks brought it, for another what it saw itself, where it cannot
    bring that to rank 0; None where it could. Then call what is returned, with the exit code.
    """
    collector = gather.Collector(seat.world) if seat.rank == 0 and seat.world > 1 else None
    told = {"port": collector.port, "word": collector.word} if collector else {}
    job = Job(
        places={seat.rank: Place((python, "-B"), environ)},
        world=seat.world,
        limits=wish.limits,
        host=seat.host,
        port=seat.port,
        backend=wish.backend,
        device=wish.device,
        sweep=wish.sweep,
        store=seat.store,
        attempt=seat.attempt,
        gather=told,
        local_ranks={seat.rank: seat.local_rank},
    )
    data = _once(job, folder)
    others = set(range(seat.world)) - {seat.rank}
    records = cast("list[Mapping[str, object]]", data["ranks"])
    if collector is not None:
        limit = wish.limits.of("", slowness=cast("float", data["slowness"]))
        collector.wait(limit + MARGIN if data["ended"] != "done" else MARGIN)
        heard = [collector.records[rank] for rank in sorted(collector.records)]
        data["ranks"] = [*records, *heard]
        others -= collector.records.keys()
    else:
        patience = 2 * wish.limits.of("", slowness=cast("float", data["slowness"])) + PATIENCE
        if (code := _brought(seat, records[0], patience)) is not None:
            return None, lambda _: code
    whole = {**data, "unheard": sorted(others), "again": {}, "done": True}
    seconds = cast("float", data["seconds"])

    def dismiss(code: int) -> int:
        if collector is not None:
            collector.dismiss(code)
        return code

    return Run(("all-reduce", "--worker"), "answered", seconds, data=whole), dismiss


def _brought(seat: Seat, record: Mapping[str, object], patience: float) -> int | None:
    """Bring *record* to rank 0, if it can be found; return the exit code that it gives."""
    for event in cast("list[Mapping[str, object]]", record["events"]):
        told = event.get("gather")
        if isinstance(told, Mapping) and isinstance(port := told.get("port"), int):
            return gather.send(seat.host, port, str(told.get("word")), record, patience)
    return None


def of(job: Job, folder: Path) -> Run:
    """Run *job*, and what is tried again when it fails, within its limits."""
    began = time.monotonic()
    data = _once(job, folder / "first")
    from torchdoctor.distributed.blame import blame  # noqa: PLC0415 - no rank waits for it

    found = read(data)
    again: dict[str, object] = {}
    if (fault := blame(found)) is not None:
        for name, other in _others(job, found, fault):
            left = job.limits.whole - (time.monotonic() - began)
            if left < max(FIRST_DEADLINE, job.limits.stage):
                break
            limits = replace(job.limits, whole=left)
            again[name] = _once(replace(other, limits=limits), folder / f"again{len(again)}")
            if name.startswith("NCCL_") and blame(read(again[name])) is None:
                break  # the first that works names the transport
    seconds = time.monotonic() - began
    return Run(
        ("all-reduce",),
        "answered",
        seconds,
        data={**data, "again": again, "done": True},
    )


def read(data: object) -> AllReduce:
    """Return what a supervisor recorded as the fact that it is."""
    from torchdoctor.reading import all_reduce  # noqa: PLC0415 - after the run, not before it

    return all_reduce.record(data)


def _once(job: Job, folder: Path) -> dict[str, object]:
    folder.mkdir(parents=True)
    return supervisor.run(job, folder)


def _others(job: Job, found: AllReduce, fault: Verdict) -> Iterator[tuple[str, Job]]:
    """Yield what to try again, and how it is called."""
    from torchdoctor.distributed import verdict  # noqa: PLC0415 - only when it failed

    took = verdict.backend(found)
    unclear = fault.cause in ("mismatch", "stuck", "late", "link-lost")
    if fault.stage in COLLECTIVE and unclear and not fault.ranks:
        yield "TORCH_DISTRIBUTED_DEBUG=DETAIL", _with(job, DETAIL)
    if took == "nccl" and (fault.cause in OF_TRANSPORTS or _crashed(fault)):
        yield "gloo", replace(job, backend="gloo")
        for change in WITHOUT:
            name, value = next(iter(change.items()))
            if name != "NCCL_SOCKET_IFNAME" or job.host.startswith("127."):
                yield f"{name}={value}", _with(job, change)


def _crashed(fault: Verdict) -> bool:
    """Tell whether a rank crashed inside NCCL, as one does that was given bad memory."""
    inside = fault.stage in ("communicator", *COLLECTIVE)
    return fault.cause == "died" and inside and fault.values.get("signal") in CRASHES


def _with(job: Job, change: Mapping[str, str]) -> Job:
    places = {
        rank: replace(place, environ={**place.environ, **change})
        for rank, place in job.places.items()
    }
    return replace(job, places=places)


def _environ(environ: Mapping[str, str], rank: int, world: int, *, gpus: bool) -> dict[str, str]:
    """Return what a launcher would set, as far as the user has not."""
    given = {"OMP_NUM_THREADS": "1", **(TALKATIVE if gpus else {}), **environ}
    return _as_rank(given, rank, world)


def _as_rank(environ: Mapping[str, str], rank: int, world: int) -> dict[str, str]:
    own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
    return {**environ, **own}


def gpus_here() -> int:
    """Return how many GPUs the system has device files for: those of NVIDIA."""
    names = [path.name for path in Path("/dev").glob("nvidia*")]
    return sum(name.removeprefix("nvidia").isdecimal() for name in names)
