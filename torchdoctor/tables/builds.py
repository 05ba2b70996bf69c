"""Which builds (cpu, cu126, cu132, rocm7.14, xpu ...) exist of each torch release, and where.

Source: PyTorch's own build matrices and get-started pages, per release in ``builds.json``. None of
it was checked by download from the index.
"""

import functools
import re
from collections.abc import Iterable
from typing import Literal, cast

from torchdoctor.tables import load
from torchdoctor.values import dataclass

INDEX_ROOT = "https://download.pytorch.org/whl/"
"""Index of one build: INDEX_ROOT + tag. Always name the tag: the root lists no cu builds."""

Kind = Literal["cpu", "cuda", "rocm", "xpu"]
Status = Literal["listed", "inferred"]

_CUDA = re.compile(r"cu(\d+)(\d)")


@dataclass(frozen=True, slots=True)
class Build:
    """One build of a torch release, as its index and the "+label" of its version name it."""

    tag: str
    kind: Kind
    cuda: str | None
    """CUDA toolkit of a cuda build, "13.2"."""
    platforms: tuple[str, ...]
    status: Status
    """listed: named by an upstream matrix or seen installed; inferred: as its neighbours."""


@functools.lru_cache(1024)
def builds(torch: str, platform: str) -> tuple[Build, ...]:
    """Return the builds of *torch* that *platform* (a platform key) can install, oldest CUDA first.

    Empty for a release the tables do not know. A build exists for the Pythons of its time only.
    """
    row = load("builds")["torch"].get(torch.partition("+")[0])
    if row is None:
        return ()
    return tuple(
        Build(tag, kind_of(tag), cuda_of(tag), tuple(platforms), status)
        for tag, platforms, status in row["builds"]
        if platform in platforms
    )


@functools.lru_cache(1024)
def installable(torch: str, platform: str) -> tuple[Build, ...]:
    """Return ``builds`` with the plain wheel, where the package index alone has that one."""
    listed, plain = builds(torch, platform), default_build(torch, platform)
    if plain is None or any(build.tag == plain for build in listed):
        return listed
    return (Build(plain, kind_of(plain), cuda_of(plain), (platform,), "listed"), *listed)


def default_build(torch: str, platform: str) -> str | None:
    """Return the tag of the wheel a plain ``pip install torch==...`` takes on *platform*.

    "cu132", "cpu" ...; None where the package index has no wheel, or for an unknown release.
    """
    row = load("builds")["torch"].get(torch.partition("+")[0])
    return None if row is None else row["default"].get(platform)


def glibc(torch: str, tag: str, platform: str) -> str | None:
    """Return the glibc that this one build needs, where it is more than its release does."""
    row = load("builds")["torch"].get(torch.partition("+")[0], {})
    found = row.get("glibc", {}).get(platform, {}).get(tag)
    return None if found is None else str(found)


def torchaudio_default(torchaudio: str, platform: str) -> str | None:
    """Return the tag of the plain wheel of a *torchaudio* that serves many torch releases.

    None for those that were published for one torch: their plain wheel is as torch's.
    """
    row = load("builds")["torchaudio"].get(torchaudio.partition("+")[0])
    return None if row is None else row["default"].get(platform)


def torchaudio_for(
    accepted: Iterable[str], tag: str, platform: str
) -> tuple[str, str | None] | None:
    """Return the torchaudio to put beside a torch build of *tag*, and its label.

    *accepted* are the releases that accept that torch, the best first. torchaudio has had no
    release of its own for torch 2.12 and newer, so that its last ones exist for some builds only;
    the newest is on the package index alone, without a label (None), and is taken where no other
    is. None as a whole: none fits.
    """
    table = load("builds")["torchaudio"]
    alone = None
    for version in accepted:
        row = table.get(version)
        if row is None or any(tag == t and platform in where for t, where, _ in row["builds"]):
            return version, tag
        if alone is None and row["default"].get(platform) == tag:
            alone = (version, None)
    return alone


def kind_of(tag: str) -> Kind:
    """Return what a build tag stands for; a tag of no known shape raises ValueError."""
    if _CUDA.fullmatch(tag):
        return "cuda"
    name = tag.rstrip("0123456789.")
    if name not in {"cpu", "rocm", "xpu"}:
        raise ValueError(f"not a build tag: {tag!r}")
    return cast("Kind", name)


def cuda_of(tag: str) -> str | None:
    """Return the CUDA version in a build tag ("cu132" is 13.2), None if it names none."""
    found = _CUDA.fullmatch(tag)
    return f"{found[1]}.{found[2]}" if found else None
