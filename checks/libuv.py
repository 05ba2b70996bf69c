"""The TCPStore asks for libuv only where this build of torch has it.

How it shows: "use_libuv was requested but PyTorch was built without libuv support", on Windows,
from torchrun or init_process_group.

Why: since torch 2.4 the store uses libuv unless it is told not to, and the wheels for Windows were
long built without it.

The fix is USE_LIBUV=0 before the start. torchrun makes stores of its own, which in some releases do
not read it: then start the script with python and the variables RANK, WORLD_SIZE, MASTER_ADDR,
MASTER_PORT, or add ``?use_libuv=0`` to the init_method.

Sources: https://github.com/pytorch/pytorch/issues/139990,
https://github.com/hiyouga/LLaMA-Factory/issues/7806
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Build, Symptom, Unknown
from torchdoctor.model import Finding

FAMILY = "distributed"
FINDS = ("libuv-missing",)


def check(
    symptoms: tuple[Symptom, ...],
    torch: Build | Unknown | None,
) -> Iterator[Finding]:
    """Read that libuv was asked for in vain."""
    said = distributed.first(symptoms, "libuv-missing")
    if said is None:
        return
    which = f"torch {torch.version}" if isinstance(torch, Build) else "This build of torch"
    yield Finding(
        "libuv-missing",
        "error",
        f"{which} has no libuv, and the TCPStore asks for it unless USE_LIBUV=0 is set.",
        distributed.seen(said),
        (
            distributed.assign(
                "USE_LIBUV",
                "0",
                why="The store then does without it.",
                settles=("libuv-missing",),
            ),
        ),
    )
