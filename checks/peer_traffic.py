"""GPUs of one machine can send to each other directly, where NCCL means to do so.

How it shows: the first all_reduce on two GPUs hangs at 100 % use, or its numbers are wrong, and
``NCCL_P2P_DISABLE=1`` makes it work; "peer access is not supported between these two devices".

Why: direct traffic over PCIe has to go from one GPU to the other. ACS on a bridge, or the IOMMU,
sends it up to the processor instead, and it is lost (p2p-acs-iommu). Some driver releases say that
cards can do it which cannot, or break it for a while (p2p-driver-bug: it worked with another
release). GeForce cards of the 40 series and later cannot do it at all (p2p-unsupported-gpu).

How to tell: ``sudo lspci -vvv | grep ACSCtl`` with ReqRedir+ or CmpltRedir+ on a bridge is ACS. A
virtual machine needs ACS; there only NCCL_P2P_DISABLE=1 is left. Without ReqRedir+ and with another
driver in the story, it is the driver. A time-out on many machines is the network, not this.

The fix is ACS off (BIOS, or setpci until the next boot) and the IOMMU off or in pass-through
(iommu=pt); or another driver. NCCL_P2P_DISABLE=1 goes round it: slower, and through /dev/shm, which
then has to be large enough (shm-too-small).

Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html,
https://github.com/NVIDIA/nccl/issues/2079, https://github.com/NVIDIA/nccl-tests/issues/117,
https://github.com/Lightning-AI/pytorch-lightning/issues/19425
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import distributed_steps as distributed
from torchdoctor import effects, gpu, steps
from torchdoctor.facts import Driver, Facts, Gpu, Peers, Symptom, Unknown
from torchdoctor.model import Confidence, Evidence, Finding, Layer
from torchdoctor.tables import drivers

FAMILY = "distributed"
FINDS = ("p2p-acs-iommu", "p2p-driver-bug", "p2p-unsupported-gpu")

TROUBLE = ("p2p-off-helps", "p2p-off-run", "p2p-data-wrong", "acs-redirects", "driver-fails")
ELSEWHERE = (
    *("rank-exception", "torchrun-root-cause", "host-oom", "loader-killed", "shm-no-space"),
    *("work-in-progress", "uneven-batches", "collective-mismatch", "ib-completion-error"),
    *("nccl-connect-failed", "client-timed-out", "nccl-versions-differ", "exit-code"),
)
"""What explains a hang better than how the GPUs send."""
STOPGAP = "until then NCCL_P2P_DISABLE=1 goes round it, slower and through /dev/shm"
LOOK = "sudo lspci -vvv | grep ACSCtl"
SWITCH_OFF = (
    "for bridge in $(lspci | cut -d' ' -f1); do sudo setpci -s $bridge ECAP_ACS+0x6.w=0000; done"
)
HONEST = "525.105.17"
"""The first driver that does not say of GeForce 40 cards that they reach each other."""
WITHOUT_P2P = re.compile(r"GeForce RTX (?:40|50)\d\d")


def check(
    symptoms: tuple[Symptom, ...],
    gpus: tuple[Gpu, ...] | Unknown,
    driver: Driver | Unknown | None,
    peers: Peers | Unknown | None,
) -> Iterator[Finding]:
    """Put together what was printed with and without peer traffic, and what the bridges say."""
    if refused := distributed.first(symptoms, "p2p-not-supported"):
        yield _unsupported(refused, gpus, "certain")
        return
    helped = _helped(symptoms)
    redirected = distributed.first(symptoms, "acs-redirects") or _redirects(peers)
    hung = distributed.first(symptoms, "hang-told", "p2p-data-wrong", "watchdog-timeout")
    if not helped and not (redirected and hung):
        yield from _untried(symptoms)
        return
    works, fails = (distributed.first(symptoms, n) for n in ("driver-works", "driver-fails"))
    seen = distributed.seen(helped, redirected, works, fails, hung)
    if redirected:
        yield _acs(seen, "certain" if helped else "likely", looked=True)
    elif works and fails and works.values != fails.values:
        yield _driver(seen, works.values["release"], fails.values["release"])
    elif named := _without_p2p(symptoms, gpus):
        if release := _claims(driver):
            yield _driver((*seen, *distributed.seen(named)), "", release)
        else:
            yield _unsupported(helped or hung, gpus, "likely")
    elif distributed.first(symptoms, "acs-off"):
        yield _driver(seen, "", "")
    else:
        yield _acs(seen, "likely", looked=False)


def _redirects(peers: Peers | Unknown | None) -> Symptom | None:
    """Return what sysfs shows of the bridges above the GPUs as lspci would have told it."""
    if not isinstance(peers, Peers) or not peers.redirecting:
        return None
    told = f"ACS redirects at {', '.join(peers.redirecting)}"
    return Symptom("acs-redirects", text=told, source="/sys/bus/pci/devices")


def _helped(symptoms: tuple[Symptom, ...]) -> Symptom | None:
    """Return what shows that it works without peer traffic, and only then."""
    if said := distributed.first(symptoms, "p2p-off-helps"):
        return said
    tried = distributed.first(symptoms, "p2p-off-run")
    return tried if distributed.first(symptoms, "hang-told", "p2p-data-wrong") else None


def _without_p2p(symptoms: tuple[Symptom, ...], gpus: tuple[Gpu, ...] | Unknown) -> Symptom | None:
    """Return that the GPUs are cards without direct traffic, as they are listed or else told."""
    told = distributed.first(symptoms, "geforce-named")
    if cards := gpu.of_nvidia(gpus):
        whole = all(WITHOUT_P2P.search(card.name) for card in cards)
        return (told or Symptom("geforce-named", text=cards[0].name)) if whole else None
    return told


def _claims(driver: Driver | Unknown | None) -> str | None:
    """Return the release of a driver that says of such cards that they can what they cannot."""
    release = (driver.release if isinstance(driver, Driver) else None) or ""
    early = release.startswith("525.") and drivers.compare(release, HONEST) < 0
    return release if early or release.startswith("530.") else None


def _untried(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Yield what a hang may be where NCCL sends directly, and nobody has tried it without."""
    hung = distributed.first(symptoms, "hang-told", "watchdog-timeout")
    sends = distributed.first(symptoms, "p2p-in-use")
    if not hung or not sends or distributed.told(symptoms, *ELSEWHERE):
        return
    step = distributed.in_launch(
        "try-without-p2p",
        "Run once with NCCL_P2P_DISABLE=1: if that works, switch ACS and the IOMMU off for the"
        " GPUs' bridges; if it hangs, too, see which rank is late (py-spy dump --pid PID)",
        why="It decides between the GPUs' own traffic and a rank that is not there.",
        settles=("hang-told", "p2p-in-use", "watchdog-timeout", "watchdog-took-down"),
        bash=("NCCL_P2P_DISABLE=1 torchrun --standalone --nproc-per-node=gpu train.py", LOOK),
    )
    yield Finding(
        "p2p-acs-iommu",
        "error",
        f"The run hangs, and NCCL sends directly between the GPUs (P2P/{sends.values['how']}):"
        " mostly ACS or the IOMMU takes what is sent.",
        distributed.seen(sends, hung),
        (step,),
        confidence="possible",
    )


def _switched_off(now: Facts) -> Facts:
    if not isinstance(now.peers, Peers):
        return now
    return replace(now, peers=replace(now.peers, redirecting=()))


def _acs(seen: tuple[Evidence, ...], confidence: Confidence, *, looked: bool) -> Finding:
    title = f"Switch ACS off for the bridges above the GPUs (in the BIOS for good); {STOPGAP}"
    if not looked:
        title = (
            "Look at the bridges above the GPUs: with ReqRedir+ switch ACS off (in the BIOS for"
            f" good), else try another driver; {STOPGAP}"
        )
    step = steps.by_hand(
        "switch-acs-off",
        title,
        why="ACS and the IOMMU send what one GPU writes to another up to the processor instead.",
        layer=Layer.HARDWARE,
        cost=steps.SMALL,
        effect=effects.then(effects.settled(*TROUBLE), _switched_off),
        bash=(SWITCH_OFF,) if looked else (LOOK, SWITCH_OFF),
        admin=True,
    )
    shown = "a bridge redirects it (ACSCtl ReqRedir+)" if looked else "mostly ACS or the IOMMU"
    return Finding(
        "p2p-acs-iommu",
        "error",
        "Direct traffic between the GPUs is broken, and without it the run works:"
        f" {shown}{' redirects it' if not looked else ''}.",
        seen,
        (step,),
        confidence=confidence,
    )


def _driver(seen: tuple[Evidence, ...], works: str, fails: str) -> Finding:
    if works:
        said = f"it works with driver {works} and not with {fails}"
    elif fails:
        said = f"driver {fails} claims it for cards that have none"
    else:
        said = "no bridge redirects it (ACSCtl ReqRedir-), so that the driver is left"
    step = steps.by_hand(
        "change-driver-for-p2p",
        f"Install driver {works}, or one newer than {fails}; {STOPGAP}"
        if works
        else f"Install another driver release{f', {HONEST} or newer' if fails else ''}; {STOPGAP}",
        why="Some driver releases break direct traffic between GPUs, or claim it where there is"
        " none.",
        layer=Layer.DRIVER,
        cost=steps.ADMIN,
        effect=effects.settled(*TROUBLE),
        admin=True,
    )
    return Finding(
        "p2p-driver-bug",
        "error",
        f"Direct traffic between the GPUs is broken, and {said}.",
        seen,
        (step,),
        confidence="likely",
    )


def _unsupported(
    said: Symptom | None, gpus: tuple[Gpu, ...] | Unknown, confidence: Confidence
) -> Finding:
    cards = gpu.of_nvidia(gpus)
    which = f"{cards[0].name} cards have" if cards else "These GPUs have"
    names = [] if not cards else [Evidence("gpus", cards[0].name, "the driver")]
    return Finding(
        "p2p-unsupported-gpu",
        "error",
        f"{which} no direct traffic to each other, and it was not switched off.",
        (*distributed.seen(said), *names),
        (
            distributed.assign(
                "NCCL_P2P_DISABLE",
                "1",
                why="NCCL then goes through shared memory.",
                settles=("p2p-not-supported", *TROUBLE),
            ),
        ),
        confidence=confidence,
    )
