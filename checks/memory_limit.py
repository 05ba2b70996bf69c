"""The memory that a container or a job may use is enough for the programs at work in it.

How it shows: training begins well, memory grows from step to step, and in the middle of the first
epoch a worker or a rank is gone (exit code -9, "DataLoader worker is killed by signal: Killed").

Why: a worker starts as a copy of the program that costs nothing, until it touches what the dataset
holds: Python counts references inside each object, so that reading a list copies it. With every
worker all of the dataset is there once more, and the limit of the control group (docker --memory,
resources.limits.memory, sbatch --mem) is reached (dataloader-too-many-workers). What the kernel has
killed it counts in the group's memory.events or memory.oom_control (host-oom-killed).

Looked at are programs that run right now under the same limit: what each worker holds, and how much
of it is a copy of its own by now. Where little is copied (arrays, tensors, mapped files), nothing
is told. That a rank was killed, without these files, is host-memory's to judge.

The fix is data that is not copied (one NumPy array or Arrow table in place of lists of objects),
fewer workers, or more memory for the container or the job.

Sources: https://github.com/pytorch/pytorch/issues/13246,
https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from torchdoctor import distributed_steps as distributed
from torchdoctor import effects, steps
from torchdoctor.facts import Container, Cpu, Limits, Symptom, Unknown, Workers, items_of
from torchdoctor.model import Evidence, Finding, Layer, Step
from torchdoctor.tables import containers

FAMILY = "distributed"
FINDS = ("dataloader-too-many-workers", "host-oom-killed")

COPIED = 0.25
"""Of what a worker holds, so much is its own as soon as it copies what it reads."""
CROWD = 2
"""Workers for each processor from which on they wait for each other."""
TOLD = ("host-oom", "loader-killed", "torchrun-root-cause", "exit-code")
GIB = 1 << 30


def check(
    limits: Limits,
    workers: tuple[Workers, ...] | Unknown,
    container: Container | Unknown | None,
    variables: Mapping[str, str] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    cpu: Cpu | Unknown,
) -> Iterator[Finding]:
    """Add up what the workers will hold, and read whether something was killed."""
    known = items_of(workers)
    here = tuple(w for w in known if w.same_group or limits.memory is None)
    limit = limits.memory or limits.ram
    kind = _kind(container, variables)
    if here and limit and _needs(here) > limit and any(map(_copies, here)):
        yield _grows(here, limit, limits, kind)
    elif crowded := _crowd(here, limits, cpu):
        yield crowded
    if limits.oom_kills and not distributed.first(symptoms, *TOLD):
        yield _killed(limits, kind)


def _kind(container: Container | Unknown | None, variables: Mapping[str, str] | Unknown) -> str:
    """Return what set the limit: the runtime of the container, or the scheduler; "" = unknown."""
    if isinstance(container, Container):
        return container.kind
    job = None if isinstance(variables, Unknown) else containers.scheduler(variables)
    return job or ""


def _needs(programs: tuple[Workers, ...]) -> int:
    """Return what all hold once every worker has a copy of its own."""
    return sum(p.program + p.count * p.each for p in programs)


def _copies(program: Workers) -> bool:
    """Tell whether its workers copy what they read; forked ones that do not share it all."""
    return program.own is not None and program.own >= COPIED * program.each


def _grows(programs: tuple[Workers, ...], limit: int, limits: Limits, kind: str) -> Finding:
    largest = max(programs, key=lambda p: p.count * p.each)
    count = sum(p.count for p in programs)
    who = "workers of a DataLoader" if largest.named else "worker processes"
    where = "this machine has" if limits.memory is None else "they may use"
    each, own, needs = map(_size, (largest.each, largest.own or 0, _needs(programs)))
    return Finding(
        "dataloader-too-many-workers",
        "warning",
        f"{count} {who} hold up to {each} each, of which {own} are a copy of its own by now: all of"
        f" it copied is {needs}, and {where} {_size(limit)}.",
        (
            Evidence("workers.count", str(count), "/proc"),
            Evidence("workers.each", each, "/proc/PID/status"),
            Evidence("workers.own", own, "/proc/PID/smaps_rollup"),
            _limit(limits, limit),
        ),
        tuple(_steps(programs, largest, limit, limits, kind)),
        confidence="likely" if largest.named else "possible",
    )


def _limit(limits: Limits, limit: int) -> Evidence:
    if limits.memory is None:
        return Evidence("limits.ram", _size(limit), "/proc/meminfo")
    return Evidence("limits.memory", _size(limit), "the cgroup")


def _steps(
    programs: tuple[Workers, ...], largest: Workers, limit: int, limits: Limits, kind: str
) -> Iterator[Step]:
    others = _needs(programs) - largest.count * largest.each
    fits = max(0, (limit - others) // largest.each)
    yield replace(
        distributed.in_script(
            "share-the-data",
            "Keep what the dataset holds in one NumPy array, a memmap or an Arrow table, not in"
            " lists and dictionaries of Python objects",
            why="Workers then go on sharing it: no reference is counted inside of it.",
            settles=(),
        ),
        effect=effects.turned("workers", lambda now: tuple(replace(p, own=0) for p in now)),
    )
    if others + fits * largest.each <= limit:
        yield replace(
            distributed.in_script(
                "fewer-workers",
                f"Give the DataLoader num_workers={fits}",
                why="So many copies fit.",
                settles=(),
                cost=steps.SMALL + 1,
            ),
            effect=effects.turned("workers", _with_fewer(largest, fits)),
        )
    if limits.memory is not None:
        yield from _more(_needs(programs), kind)


def _with_fewer(
    largest: Workers, count: int
) -> Callable[[tuple[Workers, ...]], tuple[Workers, ...]]:
    """Return what gives *largest*, whatever its workers share by then, *count* of them."""
    had = replace(largest, own=None)
    return lambda now: tuple(
        replace(p, count=count) if replace(p, own=None) == had else p for p in now
    )


def _more(needed: int, kind: str) -> Iterator[Step]:
    """Yield the step that raises the limit, where it is known who set it."""
    gib = -(-needed // GIB) + 1
    option = containers.option(kind, "memory", gib)
    if option is None:
        return
    title, bash = containers.start(kind, option)
    step = steps.restart_container(
        title,
        why="The limit is what it is started with.",
        effect=effects.altered("limits", memory=gib * GIB, oom_kills=0),
        bash=bash,
        name="raise-memory-limit",
    )
    yield step if kind != "slurm" else replace(step, layer=Layer.SCRIPT, needs=())


def _crowd(programs: tuple[Workers, ...], limits: Limits, cpu: Cpu | Unknown) -> Finding | None:
    """Return that the workers of all programs are too many for the processors, if they are."""
    count = sum(p.count for p in programs if p.named)
    cores = limits.cpus or (cpu.cores if isinstance(cpu, Cpu) else None)
    if not cores or count <= CROWD * cores:
        return None
    ranks = f" of {len(programs)} programs" if len(programs) > 1 else ""
    return Finding(
        "dataloader-too-many-workers",
        "note",
        f"{count} workers of DataLoaders{ranks} share {cores:g} processors.",
        (
            Evidence("workers.count", str(count), "/proc"),
            Evidence("limits.cpus", f"{cores:g}", "the cgroup, or the machine"),
        ),
    )


def _killed(limits: Limits, kind: str) -> Finding:
    kills = limits.oom_kills or 0
    what = "1 process was" if kills == 1 else f"{kills} processes were"
    peak = limits.memory_peak
    held = f"; the most held was {_size(peak)}" if peak else ""
    limit = f" (limit {_size(limits.memory)}{held})" if limits.memory else ""
    seen = [Evidence("limits.oom_kills", str(kills), "memory.events, memory.oom_control")]
    if limits.memory:
        seen.append(_limit(limits, limits.memory))
    less = replace(
        distributed.in_script(
            "less-host-memory",
            "Load less into the machine's memory: fewer DataLoader workers, data that is mapped and"
            " not loaded, the model on the meta device first",
            why="Every rank and every worker holds its own copy.",
            settles=(),
        ),
        effect=effects.altered("limits", oom_kills=0),
    )
    return Finding(
        "host-oom-killed",
        "warning" if limits.memory else "note",
        f"{what} killed here for lack of memory since the container or the job began{limit}.",
        tuple(seen),
        (less, *_more(2 * limits.memory, kind)) if limits.memory else (),
        because_of=("dataloader-too-many-workers",),
    )


def _size(number: int) -> str:
    return f"{number / GIB:.1f} GiB" if number >= GIB else f"{number >> 20} MiB"
