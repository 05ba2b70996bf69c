"""One line on a terminal that says how far something is, and is gone afterwards."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

T = TypeVar("T")

BAR = 30
SOON = 1.0
"""Seconds after which somebody who waits is told of it."""


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


@contextmanager
def waiting(what: str, stream: TextIO | None = None, *, soon: float = SOON) -> Iterator[None]:
    """Say that it is *what* that takes so long, and for how long already, from *soon* seconds on.

    Only on a terminal, as :func:`shown`.
    """
    out = stream or sys.stderr
    if out is None or not out.isatty():
        yield
        return
    ended, began = threading.Event(), time.monotonic()

    def tell() -> None:
        with shown(what, out) as told:
            pause = soon
            while not ended.wait(pause):
                told({"at": f"({time.monotonic() - began:.0f} s)"})
                pause = 1.0

    telling = threading.Thread(target=tell, daemon=True)
    telling.start()
    try:
        yield
    finally:
        ended.set()
        telling.join()


def counted(
    things: Iterable[T], what: str, stream: TextIO | None = None, *, soon: float = SOON
) -> Iterator[T]:
    """Yield *things*, and say how many came so far, from *soon* seconds on."""
    last = time.monotonic() - SOON + soon
    with shown(what, stream) as told:
        for number, one in enumerate(things):
            if time.monotonic() - last >= SOON:
                last = time.monotonic()
                told({"at": f"{number:,}"})
            yield one


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
