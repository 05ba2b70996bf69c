"""The texts of rebuilt/: what each shows, rebuilt from a public report, and its confirmed cause."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "rebuilt"


class Rebuilt(NamedTuple):
    """A text, and the confirmed cause of what it shows."""

    id: str
    """The name of its file and its number there: "gpu 2"."""
    cause: str
    text: str
    source: str


def inputs() -> list[Rebuilt]:
    """Return them all, in the order of the files."""
    return [
        Rebuilt(f"{path.stem} {n}", one["cause"], one["text"], one["source"])
        for path in sorted(FOLDER.glob("*.toml"))
        for n, one in enumerate(tomllib.loads(path.read_text("utf-8"))["input"], 1)
    ]
