"""What people and programs are told of an all_reduce, beside the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from torchdoctor.distributed import verdict
from torchdoctor.distributed.blame import blame, fact, last
from torchdoctor.distributed.stages import STAGES
from torchdoctor.facts import AllReduce, RankRun
from torchdoctor.report.document import Detail

if TYPE_CHECKING:
    from torchdoctor.distributed.launcher import Seat
    from torchdoctor.facts import Facts
    from torchdoctor.model import Plan
    from torchdoctor.snapshot import Snapshot

SCHEMA = "torchdoctor.all-reduce/1"
MOST_COLUMNS = 8
BAR = 30
COLUMN = 14


def told(facts: Facts, snapshot: Snapshot) -> tuple[Mapping[str, object], tuple[Detail, ...]]:
    """Return the run for programs, with every event of every rank, and the tables for people."""
    record = snapshot.probes["all-reduce"].data
    run = facts.all_reduce
    if not isinstance(run, AllReduce):
        return {"all_reduce": {"schema": SCHEMA}}, ()
    found = blame(run)
    judged = (
        {"ok": True}
        if found is None
        else {"ok": False, "cause": found.cause, "said": found.said, **verdict.where(found)}
    )
    data = {"schema": SCHEMA, "verdict": judged, "backend": verdict.backend(run), **record}
    return {"all_reduce": data}, (*_stages(run), *_again(run), *_bandwidth(run), *_what(run))


def verified(plan: Plan, command: Callable[[str], str]) -> Plan:
    """Return *plan* such that what shows that a step worked has an all_reduce tried again.

    Without one nothing would be said, which is not the same as being cured.
    """
    steps = (replace(s, verify=tuple(map(command, s.verify))) for s in plan.steps)
    return replace(plan, steps=tuple(steps))


def heard(run: object, seat: Seat | None) -> Iterator[Detail]:
    """Yield whose view this is, where it is not that of all ranks."""
    if not isinstance(run, AllReduce) or seat is None or not run.unheard:
        return
    ranks = ", ".join(map(str, run.unheard[:MOST_COLUMNS]))
    said = f"What rank {seat.rank} saw; of rank {ranks} nothing was heard here."
    yield Detail("Whose view this is", said)


def headline(run: AllReduce) -> str:
    """Return in one sentence what a healthy run has proven."""
    backend, device = verdict.backend(run), verdict.device(run)
    torch = next((str(t) for r in run.ranks if (t := fact(r, "import", "torch"))), "")
    what = f"torch {torch}, {backend} on {device}"
    many = "1 rank" if run.world == 1 else f"{run.world} ranks"
    said = f"all_reduce works: {many} in {run.seconds:.1f} s ({what})."
    if backend != "nccl":
        return f"{said} NCCL was not tried."
    return said


def _stages(run: AllReduce) -> Iterator[Detail]:
    """Yield the stages as rows, the ranks as columns, with the seconds that each took."""
    ranks = run.ranks[:MOST_COLUMNS]
    found = blame(run)
    names = [f"rank {rank.rank}" for rank in ranks]
    yield _row("Stages, in seconds", "stage", names)
    for stage in STAGES[:-1]:
        cells = [_cell(rank, stage, run.seconds) for rank in ranks]
        if any(cells):
            here = "   <- here" if found is not None and found.stage == stage else ""
            yield _row("Stages, in seconds", stage, cells, here)


def _row(heading: str, first: str, cells: list[str], end: str = "") -> Detail:
    text = f"{first:<14}" + "".join(f"{cell:<{COLUMN}}" for cell in cells)
    return Detail(heading, f"{text.rstrip()}{end}", table=True, more=False)


def _cell(rank: RankRun, stage: str, whole: float) -> str:
    events = [event for event in rank.events if event.stage == stage]
    if not events:
        return ""
    ends = [event for event in events if event.kind in ("ok", "error")]
    if not ends:
        until = rank.ended_at if rank.ended_at is not None else whole
        return f"{'died' if rank.ended_at is not None else 'waits'} {until - events[0].at:.1f}"
    word = "failed " if ends[-1].kind == "error" else ""
    return f"{word}{ends[-1].at - events[0].at:.3f}"


def _again(run: AllReduce) -> Iterator[Detail]:
    """Yield how it went when it was tried again, with what was changed."""
    for name, other in run.again.items():
        found = blame(other)
        how = "works" if found is None else f"{found.cause} in {found.stage}"
        yield Detail("Tried again", f"{name:<32}{how}", table=True, more=False)


WHAT = (
    ("torch", "import", "torch"),
    ("CUDA", "import", "cuda"),
    ("NCCL", "facts", "nccl"),
    ("driver", "facts", "driver"),
    ("GPU", "device", "gpu"),
    ("interface", "facts", "interface"),
    ("peer access", "p2p", "access"),
)
"""What the ranks told of themselves: how it is called, the stage, the name of the fact."""


def _what(run: AllReduce) -> Iterator[Detail]:
    """Yield what it ran on, each with the ranks where these differ."""
    for title, stage, name in WHAT:
        told = {rank.rank: fact(rank, stage, name) for rank in run.ranks}
        groups: dict[str, list[str]] = {}
        for rank, value in told.items():
            if value:
                shown = _dotted(value) if title == "NCCL" else str(value)
                groups.setdefault(shown, []).append(str(rank))
        each = (
            value if len(groups) == 1 else f"{value} (rank {', '.join(ranks[:MOST_COLUMNS])})"
            for value, ranks in groups.items()
        )
        if groups:
            yield Detail("What it ran on", f"{title:<14}{'; '.join(each)}", table=True, more=False)


def _dotted(number: object) -> str:
    """Return NCCL's number as a version: 23007 is 2.30.7."""
    code = int(str(number)) if str(number).isdecimal() else 0
    return f"{code // 10_000}.{code % 10_000 // 100}.{code % 100}" if code else str(number)


def _bandwidth(run: AllReduce) -> Iterator[Detail]:
    """Yield what was measured by the slowest rank, with a bar for each size."""
    sizes: dict[int, tuple[float, float, float]] = {}
    for rank in run.ranks:
        if last(rank).stage not in ("bandwidth", "barrier", "destroy", "done"):
            continue
        for event in rank.events:
            size, bus = event.values.get("bytes"), event.values.get("busbw")
            if event.stage != "bandwidth" or not isinstance(size, int) or bus is None:
                continue
            alg, spent = event.values.get("algbw"), event.values.get("seconds")
            now = tuple(float(str(value)) for value in (spent, alg, bus))
            sizes[size] = max(sizes.get(size, (0.0, 0.0, 0.0)), (now[0], now[1], now[2]))
    if not sizes:
        return
    heading = "Bandwidth (algbw, busbw as nccl-tests has them)"
    most = max(bus for _, _, bus in sizes.values())
    yield _row(heading, "size", ["seconds", "algbw GB/s", "busbw GB/s"])
    for size, (spent, alg, bus) in sorted(sizes.items()):
        bar = "#" * round(BAR * bus / most) if most and len(sizes) > 1 else ""
        cells = [f"{spent:.6f}", f"{alg:.3f}", f"{bus:.3f}", bar]
        yield _row(heading, _size(size), cells)


def _size(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"
