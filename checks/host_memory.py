"""The machine's memory is enough for the processes of a job and for the workers of its loaders.

How it shows: a rank ends with exit code -9 (SIGKILL); "DataLoader worker (pid N) is killed by
signal: Killed"; "Out of memory: Killed process" in dmesg; OOMKilled in Kubernetes; OUT_OF_MEMORY in
Slurm. The other ranks then say "Connection closed by remote peer", or end with -15.

Why: every rank loads its own copy of the model first, and every worker of a DataLoader copies what
the dataset holds (Python lists grow in each of them). The kernel, or the limit of a container or a
Slurm job, then kills the largest (host-oom-killed). Workers times ranks are many processes
(dataloader-too-many-workers).

Neighbours: "CUDA out of memory" is the GPU's. A worker that "exited unexpectedly" without a word of
memory may have crashed (loader-worker-died). -15 is torchrun ending the others: never the cause.

The fix is fewer workers, data that is mapped instead of loaded (NumPy memmap, Arrow), loading on
the meta device or with low_cpu_mem_usage, or more memory for the job. ``dmesg -T | grep -i -E
'oom|killed'`` and the cgroup's memory.events say whether it was memory.

Sources: https://github.com/pytorch/pytorch/issues/8976, Linux mm/oom_kill.c,
torch/utils/data/dataloader.py
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Limits, Platform, Symptom, Unknown
from torchdoctor.model import Confidence, Evidence, Finding

FAMILY = "distributed"
FINDS = (
    "host-oom-killed",
    "dataloader-too-many-workers",
    "loader-worker-died",
    "open-files-limit",
)

KILLED = ("-9", "137")
ENDED = ("torchrun-root-cause", "torchrun-exit", "exit-code")
SETTLED = (*ENDED, "host-oom", "loader-killed", "rank-exception")


def check(
    symptoms: tuple[Symptom, ...],
    limits: Limits | Unknown,
    platform: Platform | Unknown,
) -> Iterator[Finding]:
    """Read who was killed, and whether the kernel says that memory was why."""
    told = distributed.first(symptoms, "host-oom")
    killed = _killed(symptoms)
    crowd = distributed.first(symptoms, "too-many-workers")
    windows = isinstance(platform, Platform) and platform.system == "win32"
    if (told or killed) and not windows:
        yield _oom(told, killed, crowd, limits)
    elif not distributed.first(symptoms, "loader-bus-error", "no-main-guard"):
        for died in distributed.told(symptoms, "loader-killed", "loader-crashed")[:1]:
            yield _died(died)
    if crowd and int(crowd.values["workers"]) > int(crowd.values["most"]):
        yield _crowd(crowd, grave=bool(told or killed) or _stands(symptoms))
    if files := distributed.first(symptoms, "too-many-open-files"):
        yield _files(files)


def _stands(symptoms: tuple[Symptom, ...]) -> bool:
    """Tell whether the run stands still, and nothing else is told that could be why."""
    return {s.name for s in symptoms} == {"hang-told", "too-many-workers"}


def _killed(symptoms: tuple[Symptom, ...]) -> Symptom | None:
    """Return that a process was killed, not asked to end."""
    for said in distributed.told(symptoms, *ENDED, "loader-killed"):
        values = said.values
        killed = values.get("exitcode") in KILLED or values.get("signal") == "KILL"
        if killed or "Killed" in values.get("how", ""):
            return said
    return None


def _oom(
    told: Symptom | None, killed: Symptom | None, crowd: Symptom | None, limits: Limits | Unknown
) -> Finding:
    memory = limits.memory if isinstance(limits, Limits) else None
    known = [Evidence("limits.memory", f"{memory >> 30} GiB", "the cgroup")] if memory else []
    kills = limits.oom_kills if isinstance(limits, Limits) else None
    if kills is not None:
        known.append(Evidence("limits.oom_kills", str(kills), "the cgroup's memory.events"))
    rank = killed.values.get("rank", "") if killed else ""
    who = "A DataLoader worker" if killed and killed.name == "loader-killed" else "A process"
    if rank and "," not in rank:
        who = f"Rank {rank}"
    sure = bool(told or kills)
    # Nothing was killed for memory where this runs: it was another machine, or another reason.
    confidence: Confidence = "certain" if sure else "possible" if kills == 0 else "likely"
    look = () if sure else ("sudo dmesg -T | grep -i -E 'oom|killed process'",)
    return Finding(
        "host-oom-killed",
        "error",
        f"{who} was killed from outside (SIGKILL), "
        + ("for lack of memory." if sure else "mostly for lack of the machine's memory."),
        (*distributed.seen(told, killed, crowd), *known),
        (
            distributed.in_script(
                "less-host-memory",
                "Load less into the machine's memory: fewer DataLoader workers, data that is mapped"
                " and not loaded, the model on the meta device first; or give the job more",
                why="Every rank and every worker holds its own copy.",
                settles=SETTLED,
                bash=look,
            ),
        ),
        confidence=confidence,
        where={"rank": int(rank)} if rank.isdecimal() else None,
    )


def _died(said: Symptom) -> Finding:
    signal = said.values.get("signal")
    how = f"by {signal}" if signal else "and says not why"
    return Finding(
        "loader-worker-died",
        "error",
        f"A worker of the DataLoader ended {how}: memory, a crash in a library, or an exception.",
        distributed.seen(said),
        (
            distributed.in_script(
                "run-without-workers",
                "Run once with num_workers=0: the error of the worker is then shown; where there is"
                " none, use fewer workers",
                why="A worker's own error is lost with it.",
                settles=("loader-killed", "loader-crashed"),
            ),
        ),
        confidence="possible",
        because_of=("paging-file-too-small", "no-main-guard"),
    )


def _crowd(said: Symptom, *, grave: bool) -> Finding:
    workers, most = said.values["workers"], said.values["most"]
    return Finding(
        "dataloader-too-many-workers",
        "warning" if grave else "note",
        f"The DataLoader makes {workers} workers, and this machine suggests no more than {most}.",
        distributed.seen(said),
        (
            distributed.in_script(
                "fewer-workers",
                f"Give the DataLoader num_workers={most} or less",
                why="More processes than processors wait for each other.",
                settles=("too-many-workers",),
            ),
        )
        if grave
        else (),
    )


def _files(said: Symptom) -> Finding:
    return Finding(
        "open-files-limit",
        "error",
        "The workers of the DataLoader hand more tensors over than this process may have open"
        " files.",
        distributed.seen(said),
        (
            distributed.in_script(
                "share-by-file-system",
                'Call torch.multiprocessing.set_sharing_strategy("file_system"), or raise the limit'
                " (ulimit -n 65535)",
                why="Every shared tensor is an open file otherwise.",
                settles=("too-many-open-files",),
                bash=("ulimit -n 65535",),
            ),
        ),
    )
