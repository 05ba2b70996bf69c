"""What a row of the tables of messages has to take, and what it must leave: shared parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Sample(NamedTuple):
    """A text on which the symptom *name* is made with *values*, and one on which it is not."""

    name: str
    fires: str
    values: Mapping[str, str]
    near_miss: str
