"""One line on a terminal that says how far something is, and is gone afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

BAR = 30


@contextmanager
def shown(what: str, stream: TextIO | None = None) -> Iterator[Callable[[object], None]]:
    """Give what is told (bytes done, bytes in all) and shows it on *stream* (standard error).

    Where that is no terminal, nothing is shown: a log keeps what it was told.
    """
    out = stream or sys.stderr
    last = [""]

    def tell(far: object) -> None:
        if text := line(what, far):
            out.write(f"\r{text:<{len(last[0])}}")
            last[0] = text
            out.flush()

    def nothing(_far: object) -> None:
        pass

    try:
        yield tell if out.isatty() else nothing
    finally:
        if last[0]:
            out.write("\r" + " " * len(last[0]) + "\r")
            out.flush()


def line(what: str, far: object) -> str:
    """Return the line for *far*, [bytes done, bytes in all] or where it is; "" for others."""
    match far:
        case [int(done), int(total)] if 0 <= done <= total and total:
            bar = "#" * (BAR * done // total)
            share = 100 * done // total
            return f"{what} [{bar:<{BAR}}] {share:3} % of {total / 1e9:.1f} GB"
        case {"at": str(place)}:
            return f"{what} {place}"
    return ""
