"""All nodes of a job run the same NCCL.

How it shows: "Mismatched NCCL version detected : rank 0 version 22005 rank 8 version 21903"; or,
between versions that cannot even say so, "connecting to address with family 0 is neither AF_INET",
"Message truncated", "wrong type 4 != 3".

Why: the versions speak different protocols. The nodes have different wheels (nvidia-nccl-cu12), or
one has a system library or a second wheel in front of it.

Neighbours: one node with nvidia-nccl-cu11 and -cu12 is nvidia-wheels-mixed; "Message truncated"
with equal versions is a collective that the ranks call with different sizes (collective-mismatch).

The fix is the same torch and the same nvidia-nccl on every node: compare ``pip list`` of them.

Sources: https://github.com/NVIDIA/nccl/issues/1267, NCCL src/init.cc
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding

FAMILY = "distributed"
FINDS = ("nccl-version-differs",)

BROKEN = (
    "nccl-address-family",
    "nccl-message-truncated",
    "nccl-wrong-peer",
    "nccl-versions-differ",
)


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Compare the versions that are told, where something between nodes broke."""
    said = distributed.first(symptoms, "nccl-versions-differ")
    broken = said or distributed.first(symptoms, *BROKEN)
    versions = _versions(symptoms)
    if broken is None or not (said or versions):
        return
    if said:
        both = f"{_dotted(said.values['one'])} and {_dotted(said.values['other'])}"
    else:
        both = " and ".join(versions)
    packages = distributed.told(symptoms, "nccl-package", "nccl-version-line")
    yield Finding(
        "nccl-version-differs",
        "error",
        f"The nodes of this job run different versions of NCCL, {both}.",
        distributed.seen(broken, *packages[:4]),
        (
            distributed.in_launch(
                "same-nccl-everywhere",
                "Install the same torch, and with it the same nvidia-nccl, on every node",
                why="Different versions of NCCL do not speak the same protocol.",
                settles=(*BROKEN, "nccl-package", "nccl-version-line"),
                bash=("python -m pip list | grep -i -e torch -e nccl",),
            ),
        ),
        because_of=("nvidia-wheels-mixed",),
    )


def _versions(symptoms: tuple[Symptom, ...]) -> tuple[str, ...]:
    """Return the versions of one package, or of the lines that NCCL prints, where they differ."""
    groups: dict[tuple[str, str], list[str]] = {}
    for symptom in distributed.told(symptoms, "nccl-package", "nccl-version-line"):
        key = (symptom.name, symptom.values.get("cuda", "") if "package" in symptom.name else "")
        groups.setdefault(key, []).append(symptom.values["version"])
    for found in groups.values():
        if len(set(found)) > 1:
            return tuple(dict.fromkeys(found))
    return ()


def _dotted(code: str) -> str:
    """Return NCCL's number as a version: 22005 is 2.20.5, 2804 is 2.8.4."""
    number = int(code)
    if number < 10_000:  # noqa: PLR2004 - up to 2.8 it had one digit less
        return f"{number // 1000}.{number % 1000 // 100}.{number % 100}"
    return f"{number // 10_000}.{number % 10_000 // 100}.{number % 100}"
