"""Which AMD GPUs a ROCm build of torch has code for, and how a GPU borrows another's code.

Source: PyTorch's build scripts and issues, per row in ``rocm.toml``. A target is "gfx1100"; a tag
is that of a build, "rocm7.2". ``gpus.gfx_of`` tells the target of a GPU by its name.
"""

from __future__ import annotations

import functools
import re

from torchdoctor.tables import load
from torchdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Override:
    """HSA_OVERRIDE_GFX_VERSION for a GPU: the value, and the target whose code then runs."""

    value: str
    target: str


def targets(torch: str, tag: str) -> tuple[str, ...] | None:
    """Return the targets that *torch* built as *tag* ("rocm7.2") has code for.

    None: not a ROCm build, a release older than 2.0, or newer than the tables (2.15 was not read).
    """
    release = _numbers(torch.partition("+")[0])
    table = load("rocm")
    unread = _numbers(table["not_read_from"]) or ()
    if not tag.startswith("rocm") or release is None or release >= unread:
        return None
    row = next((r for v, r in table["targets"].items() if release >= (_numbers(v) or ())), None)
    if row is None:
        return None
    kept = [t for t in row if t not in table["without"].get(tag, ())]
    return (*kept, *table["with"].get(f"{torch.partition('+')[0]} {tag}", ()))


def runs(torch: str, tag: str, target: str) -> bool | None:
    """Say whether *torch* built as *tag* runs on a GPU of *target*, its matrix products included.

    None: unknown. False also for targets that torch has code for and rocBLAS of that ROCm has not.
    """
    have = targets(torch, tag)
    if have is None:
        return None
    return target in have and blas(tag, target)


def blas(tag: str, target: str) -> bool:
    """Say whether nothing is known against rocBLAS of *tag* having code for *target*."""
    rocm = _numbers(tag.removeprefix("rocm"))
    rows = load("rocm")["without_blas"].items()
    return not any(
        rocm is not None and rocm >= (_numbers(since) or ()) and target in lost
        for since, lost in rows
    )


@functools.lru_cache(4096)
def override(torch: str, tag: str, target: str) -> Override | None:
    """Return the override that lets a GPU of *target* run *torch* built as *tag*, on Linux.

    None: none is needed, none is known, the build lacks that code too, or its runtime refuses to
    start with the variable set (ROCm 7.14 on).
    """
    row = load("rocm")["override"].get(target)
    if row is None or not override_works(tag) or runs(torch, tag, target) is not False:
        return None
    return Override(row[0], row[1]) if runs(torch, tag, row[1]) else None


def override_hangs(target: str, value: str) -> bool:
    """Say whether a GPU of *target* faults and hangs with this override."""
    return value in load("rocm")["override_hangs"].get(target, ())


def target_of(value: str) -> str | None:
    """Return the target that an override names: "10.3.0" is gfx1030; None for what is no value."""
    found = re.fullmatch(r"(\d{1,2})\.(\d)\.(\d{1,2})", value.strip())
    return f"gfx{found[1]}{found[2]}{int(found[3]):x}" if found else None


def override_works(tag: str) -> bool:
    """Say whether the runtime of *tag* minds HSA_OVERRIDE_GFX_VERSION, rather than refusing it."""
    rocm = _numbers(tag.removeprefix("rocm"))
    return rocm is not None and rocm < (_numbers(load("rocm")["override_ends"]["rocm"]) or ())


def integrated(target: str) -> bool:
    """Say whether *target* is of graphics inside a processor, too small to install torch for."""
    return target in load("rocm")["integrated"]["targets"]


def windows_index() -> str:
    """Return AMD's index of ROCm builds for Windows; the PyTorch index has none."""
    return str(load("rocm")["windows"]["index"])


def _numbers(text: str) -> tuple[int, ...] | None:
    parts = text.split(".")
    return tuple(map(int, parts)) if all(p.isdigit() for p in parts) else None
