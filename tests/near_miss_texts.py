"""The texts of near_misses/: what each looks like, and why it is not that."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "near_misses"


class NearMiss(NamedTuple):
    """A text that looks like a cause and is not."""

    id: str
    """The name of its file and its number there: "gpu 12"."""
    looks_like: str
    is_it: str
    """The finding that has to come first; "" where nothing above a note may be said."""
    also: tuple[str, ...]
    """What else may be said then."""
    why: str
    text: str


def near_misses() -> list[NearMiss]:
    """Return them all, in the order of the files."""
    return [
        NearMiss(
            id=f"{path.stem} {n}",
            looks_like=one["not"],
            is_it=one.get("is", ""),
            also=tuple(one.get("also", ())),
            why=one["why"],
            text=one["text"],
        )
        for path in sorted(FOLDER.glob("*.toml"))
        for n, one in enumerate(tomllib.loads(path.read_text("utf-8"))["input"], 1)
    ]
