"""NCCL itself carried the all_reduce that was asked for.

How it shows: the all_reduce is healthy on a machine without GPUs, and the job hangs on the one that
has them.

Why: ``torchdoctor all-reduce`` takes gloo where torch finds no GPU. Processes, ports, addresses and
the network are proven then; NCCL's own transports (peer traffic, shared memory, InfiniBand) are not
touched. So this stays unknown until NCCL has run; with one GPU it runs on one rank, which proves
that NCCL loads and that its kernels work, and nothing between GPUs.

The fix is to run it where the GPUs are: ``torchdoctor all-reduce --backend nccl``. When NCCL fails
and gloo, tried beside it, does not, the network is not at fault, and the first of NCCL_P2P_DISABLE,
NCCL_SHM_DISABLE and NCCL_IB_DISABLE with which it works names the transport.

Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.facts import AllReduce
from torchdoctor.model import CannotTell, Finding

FAMILY = "distributed"
AFTER = ("torch-present", "torch-imports")
FINDS = ("nccl-transport-broken",)


def check(all_reduce: AllReduce | None) -> Iterator[Finding]:
    """Say what was not proven, and which transport it is where that is known."""
    if all_reduce is None:
        return
    from torchdoctor.distributed.blame import blame  # noqa: PLC0415 - a run is rarely given
    from torchdoctor.distributed.verdict import (  # noqa: PLC0415
        backend,
        proven,
        transport,
        untold,
    )

    if backend(all_reduce) != "nccl":
        raise CannotTell(proven(all_reduce))
    if blame(all_reduce) is None:
        if all_reduce.world == 1:
            shared = any(blame(again) is None for again in all_reduce.again.values())
            two = ", and two ranks on it meet" if shared else ""
            raise CannotTell(f"NCCL works on one GPU{two}; between GPUs nothing was tried")
        return
    if (found := transport(all_reduce)) is None:
        raise CannotTell(untold(all_reduce))
    yield found
