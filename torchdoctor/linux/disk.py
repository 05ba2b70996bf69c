"""The files of a disk as the loader asks for them: looked at when asked, and remembered.

What was asked for is what a record has to hold: with it the same search comes to the same end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping

from .loader import File
from .objects import SharedObject, read

MOST = 4096
"""Files that are read, at most: a process has a few hundred objects."""


class OnDisk(Mapping[str, File]):
    """Files by path. One that may not be read is there, with None for its facts."""

    def __init__(self, place: Callable[[str], str] = str) -> None:
        """Take every path to be where *place* says."""
        self._place = place
        self._facts: dict[str, SharedObject | None] = {}
        self.asked: dict[str, File | None] = {}
        """What was asked for, and what was there."""

    def __getitem__(self, path: str) -> File:
        if path not in self.asked:
            self.asked[path] = self._look(path)
        found = self.asked[path]
        if found is None:
            raise KeyError(path)
        return found

    def _look(self, path: str) -> File | None:
        real = self._place(path)
        try:
            status = os.stat(real)  # noqa: PTH116 - asked thousands of times
        except (OSError, ValueError):
            return None
        same = f"{status.st_dev:x}:{status.st_ino:x}"
        if not stat.S_ISREG(status.st_mode):  # the loader opens it, and ends there
            return File(SharedObject(broken="it is not a file", machine=""), same)
        if same not in self._facts:
            self._facts[same] = self._read(real) if len(self._facts) < MOST else None
        return File(self._facts[same], same)

    @staticmethod
    def _read(real: str) -> SharedObject | None:
        try:
            return read(real)
        except (OSError, ValueError):
            return None

    def __iter__(self) -> Iterator[str]:
        return (path for path, file in self.asked.items() if file)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Listed(Mapping[str, tuple[str, ...]]):
    """The names in folders, in the order of the folder; a folder that is not there is not in it."""

    def __init__(self) -> None:
        self.asked: dict[str, tuple[str, ...] | None] = {}

    def __getitem__(self, path: str) -> tuple[str, ...]:
        if path not in self.asked:
            try:
                self.asked[path] = tuple(os.listdir(path)[:MOST])  # noqa: PTH208 - names only
            except (OSError, ValueError):
                self.asked[path] = None
        found = self.asked[path]
        if found is None:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        return (path for path, names in self.asked.items() if names is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
