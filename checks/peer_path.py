"""Nothing on the way between the GPUs of this machine sends what they exchange elsewhere.

How it shows: the first all_reduce on two GPUs hangs at 100 % use, ends with wrong numbers, or is
many times slower than the bus; ``NCCL_P2P_DISABLE=1`` makes it work. Here it is told before that.

Why: over PCIe one GPU writes to the other through the bridges above both. Where ACS redirects
requests or completions (ACSCtl: ReqRedir+, CmpltRedir+), a bridge sends them up to the processor
instead, where they are slow, or with a translating IOMMU lost (p2p-acs-iommu).

How to tell: the kernel shows a bridge's ACS to root alone; without that it stays unknown, and
``sudo lspci -vvv | grep ACSCtl`` shows it. GPUs with NVLink do not need the bus for each other. A
virtual machine needs ACS: there only NCCL_P2P_DISABLE=1 is left. What was printed by a run that
hung is judged by peer-traffic.

The fix is ACS off in the BIOS, or with setpci until the next boot, and the IOMMU off or in
pass-through (iommu=pt).

Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html (PCI Access
Control Services), include/uapi/linux/pci_regs.h
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import Gpu, Peers, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step

FAMILY = "distributed"
FINDS = ("p2p-acs-iommu",)

LINKED = ("SXM", "NVL", "HGX", "GB200", "GH200")
"""In the names of GPUs that have NVLink to each other."""
SHOWN = 4


def check(peers: Peers | None, gpus: tuple[Gpu, ...] | Unknown) -> Iterator[Finding]:
    """Look at the bridges above the GPUs."""
    if peers is None or peers.gpus < 2 or _linked(gpus):  # noqa: PLR2004 - one has no peer
        return
    if peers.redirecting is None:
        raise CannotTell("what the bridges above the GPUs do is shown to root alone")
    if not peers.redirecting:
        return
    first = ", ".join(peers.redirecting[:SHOWN])
    lost = " and the IOMMU translates it" if peers.iommu == "translates" else ""
    yield Finding(
        "p2p-acs-iommu",
        "warning",
        f"ACS of {len(peers.redirecting)} bridges above the GPUs ({first}) sends what one GPU"
        f" writes to another up to the processor{lost}.",
        (
            Evidence("peers.redirecting", ", ".join(peers.redirecting), "/sys/bus/pci/devices"),
            *((Evidence("peers.iommu", peers.iommu, "/sys/kernel/iommu_groups"),) * bool(lost)),
        ),
        (_without() if peers.virtual else _off(peers),),
        confidence="likely",
    )


def _linked(gpus: tuple[Gpu, ...] | Unknown) -> bool:
    cards = gpu.of_nvidia(gpus)
    return bool(cards) and all(any(word in card.name for word in LINKED) for card in cards)


def _off(peers: Peers) -> Step:
    return steps.by_hand(
        "switch-acs-off",
        "Switch ACS off for the bridges above the GPUs: in the BIOS for good, with setpci until the"
        " next boot",
        why="ACS is for machines that give devices to virtual ones.",
        layer=Layer.HARDWARE,
        cost=steps.SMALL,
        effect=effects.altered("peers", redirecting=()),
        bash=tuple(
            f"sudo setpci -s {name} ECAP_ACS+0x6.w=0000" for name in peers.redirecting or ()
        ),
        admin=True,
    )


def _without() -> Step:
    """Return what is left in a virtual machine, whose host needs ACS."""
    step = steps.set_variable(
        "NCCL_P2P_DISABLE", "1", why="A virtual machine cannot do without ACS."
    )
    return replace(step, effect=effects.then(step.effect, effects.change(peers=None)))
