"""Of several ranks that fail, the one that failed first is told from those that only notice it.

How it shows: ncclRemoteError, "Connection closed by peer", "Watchdog caught collective operation
timeout", ChildFailedError, exit code -15 on most ranks, and on one of them something else.

Why: a collective needs all ranks. When one ends, by an exception of its own or killed, all others
stop in the next collective, and each prints an error that is about the network. The cause is what
the first one printed; torchrun names it under "Root Cause (first observed failure)".

Neighbours: where no rank says anything of its own, one was killed (host-oom-killed) or is only late
(slow-rank-timeout).

The fix is that of the first rank's error. Without it in the log: decorate main() with
``torch.distributed.elastic.multiprocessing.errors.record``, and start with ``torchrun --log-dir
logs --redirects 3``, so that every rank's last words are kept.

Source: torch/distributed/elastic/multiprocessing/errors; https://github.com/NVIDIA/nccl/issues/2076
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding
from torchdoctor.tables import symptoms as table

FAMILY = "distributed"
FINDS = ("rank-crashed-first",)

OWN = ("rank-exception", "torchrun-root-cause")
ABOUT = (
    *OWN,
    *("torchrun-exit", "exit-code", "launch-line", "launch-size", "nccl-version-line"),
    *("nccl-interface", "ib-in-use", "net-plugin", "nccl-error", "hang-told", "work-in-progress"),
    *("watchdog-progress", "barrier-device-unknown", "process-group-not-destroyed", "nccl-package"),
    *("local-address", "hosts-loopback", "first-collective-missed", "store-timed-out"),
    *("client-timed-out", "nccl-connect-failed", "gloo-connect-failed", "too-many-workers"),
)
"""What is printed beside a failure and explains none by itself."""
OF_THE_GPU = (
    *("cuda-system-not-ready", "cuda-driver-mismatch", "cuda-compat-not-supported"),
    *("cuda-driver-too-old", "cuda-no-device", "cuda-invalid-device", "no-kernel-image"),
    *("nvml-version-mismatch", "unsupported-ptx", "not-compiled-with-cuda"),
)
"""Messages of which another check says what they mean, beside those that no install unsays."""
KILLED = ("-9", "137")
STOPPED = ("-15", "143")


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Look for the rank with an error of its own, where others have only echoes."""
    echoes = distributed.told(symptoms, *table.echoes())
    root = distributed.first(symptoms, "torchrun-root-cause")
    if root and root.values["exitcode"] in (*KILLED, *STOPPED):
        return
    own = distributed.told(symptoms, "rank-exception")
    if not echoes or not (own or root):
        return
    error = _first(own, root)
    rank = error.values["rank"].partition(",")[0] if error else root.values["rank"] if root else ""
    if error:
        said = f"{error.values['type']}: {error.values['message'].rstrip('.')}"
    else:
        said = f"exit code {root.values['exitcode']}" if root else ""
    told = {*OF_THE_GPU, *table.lasting()} - {*ABOUT, *table.echoes()}
    known = any(symptom.name in told for symptom in symptoms)
    step = distributed.in_script(
        "mend-first-rank",
        f"Mend what rank {rank} says first; to have every rank's last words, decorate main() with"
        " torch.distributed.elastic.multiprocessing.errors.record",
        why="What the other ranks print follows from it.",
        settles=(*OWN, *table.echoes(), "torchrun-exit", "exit-code", "nccl-error"),
        bash=("torchrun --log-dir logs --redirects 3 --nproc-per-node=gpu train.py",),
    )
    yield Finding(
        "rank-crashed-first",
        "note" if known else "error",
        f"Rank {rank} failed first ({said}); what the others print only follows from it.",
        distributed.seen(root, error, *echoes[:2]),
        () if known else (step,),
        confidence="certain" if root or len(own) == 1 else "likely",
        where={"rank": int(rank)} if rank.isdecimal() else None,
    )


def _first(own: tuple[Symptom, ...], root: Symptom | None) -> Symptom | None:
    """Return the exception of the rank that torchrun names; else the first in the text."""
    if root:
        ranks = (s for s in own if root.values["rank"] in s.values["rank"].split(","))
        return next(ranks, None)
    return next(iter(own), None)
