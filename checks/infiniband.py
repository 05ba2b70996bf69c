"""NCCL can send over InfiniBand or RoCE where it means to.

How it shows: "NET/IB : Got completion with error 12 ... vendor err 129"; "ibv_modify_qp failed";
"Call to ibv_reg_mr failed ... Cannot allocate memory".

Why: error 12 means that what was sent never arrived: on RoCE mostly a GID of another kind than the
network routes (NCCL_IB_GID_INDEX), else ports that are not connected, other VLANs, a flow control
that is off. "Cannot allocate memory" is the limit for locked memory (memlock-too-small), not RAM.

Neighbours: completion error 5 is what follows when the other side is gone (rank-crashed-first).

The fix: ``show_gids`` lists the GIDs, take the index of RoCE v2 with the IPv4 address (often 3).
``ib_write_bw`` between two nodes proves the fabric without NCCL; NCCL_IB_DISABLE=1 proves that the
rest works. For memory: ulimit -l unlimited, docker --ulimit memlock=-1.

Sources: https://github.com/NVIDIA/nccl/issues/426, https://github.com/NVIDIA/nccl/issues/1405,
https://github.com/NVIDIA/nccl-tests/issues/206
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import distributed_steps as distributed
from torchdoctor import effects, steps
from torchdoctor.facts import Container, Facts, Limits, Symptom, Unknown
from torchdoctor.model import Evidence, Finding, Layer

FAMILY = "distributed"
FINDS = ("ib-roce-misconfig", "memlock-too-small")

NOT_ARRIVED = ("12",)
"""IBV_WC_RETRY_EXC_ERR; others tell that the other side is gone, or of the GPU's memory."""
FABRIC = ("ib-completion-error", "ib-queue-pair-failed")


def check(
    symptoms: tuple[Symptom, ...],
    limits: Limits | Unknown,
    container: Container | Unknown | None,
) -> Iterator[Finding]:
    """Read how the sending failed."""
    lost = next(
        (
            s
            for s in distributed.told(symptoms, *FABRIC)
            if s.name != "ib-completion-error" or s.values["status"] in NOT_ARRIVED
        ),
        None,
    )
    if lost:
        used = distributed.first(symptoms, "ib-in-use")
        yield _fabric(lost, used, roce=used is None or used.values["kind"] == "RoCE")
    if refused := distributed.first(symptoms, "ib-memory-refused"):
        locked = limits.locked_memory if isinstance(limits, Limits) else None
        known = (
            [Evidence("limits.locked_memory", f"{locked >> 10} KiB", "ulimit -l")] if locked else []
        )
        inside = isinstance(container, Container)
        yield Finding(
            "memlock-too-small",
            "error",
            f"NCCL may not lock the memory that InfiniBand needs (ibv_{refused.values['call']}).",
            (*distributed.seen(refused), *known),
            (
                steps.by_hand(
                    "raise-memlock",
                    "Start the container with --ulimit memlock=-1"
                    if inside
                    else "Lift the limit for locked memory (ulimit -l unlimited; memlock in"
                    " /etc/security/limits.conf; docker --ulimit memlock=-1)",
                    why="InfiniBand reads and writes memory that may not be moved.",
                    layer=Layer.RUNTIME,
                    cost=steps.BUILD,
                    effect=effects.then(effects.settled("ib-memory-refused"), _unlimited),
                    bash=("docker run --gpus all --ulimit memlock=-1 IMAGE",) if inside else (),
                    admin=not inside,
                ),
            ),
        )


def _unlimited(facts: Facts) -> Facts:
    if not isinstance(facts.limits, Limits):
        return facts
    return facts.but(limits=replace(facts.limits, locked_memory=None))


def _fabric(lost: Symptom, used: Symptom | None, *, roce: bool) -> Finding:
    device = f" over {used.values['device']}" if used else ""
    if roce:
        step = distributed.assign(
            "NCCL_IB_GID_INDEX",
            "3",
            why="It is mostly RoCE v2 with the IPv4 address, the kind that a network routes.",
            settles=FABRIC,
            title="Set NCCL_IB_GID_INDEX on every node to the index that `show_gids` gives for RoCE"
            " v2 with the IPv4 address, mostly 3",
        )
    else:
        step = distributed.in_launch(
            "prove-the-fabric",
            "Prove the fabric without NCCL between the two nodes (ibstat; ib_write_bw), and mend"
            " what it shows; NCCL_IB_DISABLE=1 goes round it",
            why="The other side did not answer on the InfiniBand network.",
            settles=FABRIC,
            bash=("ibstat", "ib_write_bw NODE0"),
        )
    kind = "RoCE" if roce else "InfiniBand"
    return Finding(
        "ib-roce-misconfig",
        "error",
        f"What NCCL sends{device} does not arrive: the {kind} settings or the network between the"
        " nodes are wrong.",
        distributed.seen(lost, used),
        (step,),
        confidence="likely",
    )
