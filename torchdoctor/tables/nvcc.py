"""Which host compilers an nvcc takes, and which GPUs it makes code for, by its CUDA release.

Source: the toolkits' own headers and programs (``nvcc.toml``). A release that is not in the table
is unknown: None.
"""

from __future__ import annotations

from typing import cast

from torchdoctor.tables import load

_OF = {"gcc": "gcc", "clang": "clang", "msvc": "msvc"}


def newest_compiler(release: str, kind: str) -> int | None:
    """Return the newest major of gcc or clang, or _MSC_VER of msvc, that nvcc does not refuse."""
    row = load("nvcc")["release"].get(release)
    return cast("int", row[_OF[kind]]) if row and kind in _OF else None


def first_gcc(standard: str) -> int | None:
    """Return the first major of gcc that takes -std=c++*standard*."""
    return cast("int | None", load("nvcc")["first_gcc"].get(standard))


def targets(release: str) -> tuple[str, ...] | None:
    """Return what nvcc of *release* makes code for: "86", "90a"."""
    row = load("nvcc")["release"].get(release)
    return tuple(row["targets"].split()) if row else None


def first_with(target: str, major: str) -> str | None:
    """Return the first release of a CUDA *major* that makes code for *target*."""
    rows = load("nvcc")["release"]
    mine = (name for name in rows if name.partition(".")[0] == major)
    return next((name for name in mine if target in rows[name]["targets"].split()), None)


def as_of() -> str:
    """Return the day of the table, for "newer than the tables of"."""
    return str(load("nvcc")["as_of"])
