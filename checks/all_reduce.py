"""The all_reduce that was asked for came to its end, with the right numbers, on every rank.

How it shows: ``torchdoctor all-reduce`` (or ``check --all-reduce``) starts real ranks and says
which of them failed, in which stage, and why; your own job just hangs at its first collective.

Why: before the first all_reduce every rank has started, reached rank 0, imported torch, met the
others at the store, connected to each of them on the address that its backend gives away, and made
a communicator. A collective then waits for all of them. Whatever goes wrong with one shows as a
time-out of the others, whose messages tell nothing of the cause.

How to tell: what a rank says of another is evidence, never the cause. A rank that never started, an
error of its own, one that died, one that was stopped: in this order. Then a link that carries
nothing, then whoever is furthest behind. Where all are equally far, no rank is to blame.

What NCCL chooses by (algorithm, transport, buffers) has to be set alike on all ranks; where it is
not, that is told even of a run that is well (rank-variables-differ).

The fix depends on the cause, and is beside it. A run that is healthy over gloo proves processes,
ports, addresses and network, not NCCL (nccl-run).

Sources: each of these faults was made on purpose and run;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.facts import AllReduce
from torchdoctor.model import Finding

FAMILY = "distributed"
AFTER = ("torch-present", "torch-imports")
FINDS = (
    *("rank-not-started", "rank-died", "rank-stopped", "rank-stuck", "rank-raised"),
    *("torch-import-fails", "rendezvous-port-in-use", "backend-unavailable", "cuda-not-available"),
    *("nproc-exceeds-gpus", "gpu-kernel-fails", "shm-too-small", "wrong-socket-ifname"),
    *("hostname-loopback", "ranks-differ", "duplicate-gpu", "all-reduce-wrong-data"),
    *("p2p-acs-iommu", "collective-mismatch", "collective-stuck", "link-lost", "peer-unreachable"),
    *("master-unreachable", "link-slow", "link-drops-large-packets", "rank-variables-differ"),
)


def check(all_reduce: AllReduce | None) -> Iterator[Finding]:
    """Say who is to blame, if it failed."""
    if all_reduce is None:
        return
    from torchdoctor.distributed.blame import blame  # noqa: PLC0415 - a run is rarely given
    from torchdoctor.distributed.verdict import differing, finding  # noqa: PLC0415

    if (found := blame(all_reduce)) is not None:
        yield finding(found, all_reduce)
    yield from differing(all_reduce)
