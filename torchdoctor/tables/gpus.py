"""Which GPUs a build of torch has code for, and what a GPU is by its name.

Source: flags in the wheels, PyTorch's build scripts and what users printed, per row in
``archs.json``; torch's own table of which code runs where; NVIDIA's and AMD's GPU lists
(``gpus.toml``). Capabilities are pairs, (8, 6); code targets are integers, 86, 120.
"""

import functools
import re
from collections.abc import Iterable, Mapping

from torchdoctor.tables import load
from torchdoctor.values import dataclass

_FIRST_PTX_OF_USE = 50
"""Windows builds with cu113-cu118 carry PTX 3.7, which the driver may compile for a new GPU; but
cuBLAS and cuDNN of that time do not know it (inference), and torch warns."""


@dataclass(frozen=True, slots=True)
class ArchList:
    """What a build was compiled for, as ``torch.cuda.get_arch_list()`` of it would tell."""

    sm: tuple[int, ...]
    """Targets with machine code (sm_86 is 86)."""
    ptx: tuple[int, ...]
    """Targets also present as PTX (compute_120 is 120)."""
    certain: bool
    """False where sources disagree or it was only inferred; do not turn a GPU away by it."""


def arch_list(torch: str, tag: str, platform: str) -> ArchList | None:
    """Return what *torch* built as *tag* ("cu128") for *platform* was compiled for.

    None: not known, or no CUDA build. Prefer what the installed torch says of itself.
    """
    row = load("archs")["torch"].get(torch.partition("+")[0], {}).get(tag, {}).get(platform)
    if row is None:
        return None
    sm, ptx, status, _source = row
    return ArchList(tuple(sm), tuple(ptx), certain=status != "uncertain")


def runs(
    sm: Iterable[int],
    ptx: Iterable[int],
    capability: tuple[int, int],
    *,
    cuda: str | None = None,
) -> bool | None:
    """Say whether a build with these targets has code that runs on a GPU of *capability*.

    *cuda* is the build's CUDA ("13.2"): from 13.2 on, code for 7.0, 8.0 and 8.6 runs on the Jetson
    of that family too (7.2, 8.7); before, it does not; without it, that case is None. Also None:
    a GPU newer than torch's table in a family the build has older code for, and PTX of an earlier
    family, whose libraries may not know the GPU. PTX 3.7 counts for nothing.
    """
    device = capability[0] * 10 + capability[1]
    answers = {_code_runs(target, device, cuda) for target in sm}
    answers |= {_ptx_runs(target, device) for target in ptx}
    if True in answers:
        return True
    return None if None in answers else False


@functools.lru_cache(256)
def capability_of(name: str) -> tuple[int, int] | None:
    """Return the compute capability of the NVIDIA GPU called *name* ("Tesla T4"), None if unknown.

    For reports that only name the GPU: the driver's own answer is better.
    """
    found = _first_match(load("gpus")["capability"], name)
    if found is None:
        return None
    major, _, minor = found.partition(".")
    return int(major), int(minor)


def without_forward_compatibility(name: str) -> bool:
    """Tell whether cuda-compat, a libcuda newer than the driver, never runs on the GPU *name*."""
    return any(re.search(one, name) for one in load("gpus")["without_forward_compatibility"])


@functools.lru_cache(256)
def gfx_of(name: str) -> str | None:
    """Return the target ("gfx1100") of the AMD GPU called *name*, None if unknown."""
    return _first_match(load("gpus")["gfx"], name)


def _code_runs(target: int, device: int, cuda: str | None) -> bool | None:
    if target == device:
        return True
    tables = load("archs")
    known: Mapping[str, list[int]] = tables["runs_on"]
    jetson: Mapping[str, list[int]] = tables["runs_on_from_cuda_13_2"]
    if device in known.get(str(target), ()):
        return True
    if device in jetson.get(str(target), ()):
        return None if cuda is None else _pair(cuda) >= (13, 2)
    same_family_older = target // 10 == device // 10 and target < device
    if not same_family_older:
        return False
    return False if str(target) in known and str(device) in known else None


def _ptx_runs(target: int, device: int) -> bool | None:
    if target > device or target < _FIRST_PTX_OF_USE:
        return False
    return True if target // 10 == device // 10 else None


def _pair(cuda: str) -> tuple[int, int]:
    major, minor, *_ = (int(part) for part in cuda.split("."))
    return major, minor


def _first_match(table: Mapping[str, list[str]], name: str) -> str | None:
    for answer, patterns in table.items():
        if any(re.search(pattern, name) for pattern in patterns):
            return answer
    return None
