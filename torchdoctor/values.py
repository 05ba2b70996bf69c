"""Frozen values, made in half the time.

What ``@dataclass(frozen=True)`` adds at run time to each class, a quick look pays for in a seventh
of its time. So it is the type checker that holds values to be frozen here, for whom this *is*
``dataclasses.dataclass``; that no check changes a fact is seen in the tests of every check.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - it is handed on
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, **how: bool
    ) -> object:
        """Return what ``dataclasses.dataclass`` does; *frozen* brings the hash alone."""
        return dataclasses.dataclass(cls, eq=eq, unsafe_hash=frozen and eq, **how)
