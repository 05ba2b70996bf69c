"""What a reader of pasted text gives back: single statements, each with where it was read."""

from __future__ import annotations

import re
from dataclasses import field

from torchdoctor.facts import Compiler, Device, Gpu, Leftover, Toolkit
from torchdoctor.values import dataclass

HINT, TOLD, LISTED, PRINTED = 10, 20, 30, 40
"""How much a statement counts beside another: deduced from a path or a prompt; written by a
person; listed by a package manager; printed by the program that it is about."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package in a listing of pip, uv or poetry; *name* is normalised."""

    name: str
    version: str
    folder: str = ""
    installer: str = ""
    editable: bool = False
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CondaRow:
    """A row of a conda listing; a package that pip installed has the channel pypi."""

    name: str
    version: str
    build: str = ""
    channel: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """A listing called *what* ("distributions", "conda") that shows everything there is."""

    what: str
    names: frozenset[str]


Value = (
    str
    | int
    | bool
    | None
    | Package
    | CondaRow
    | Whole
    | Gpu
    | Device
    | Toolkit
    | Compiler
    | Leftover
    | tuple[str, ...]
    | frozenset[str]
)


@dataclass(frozen=True, slots=True)
class Said:
    """One statement: *fact* is a dotted name, such as "driver.release" or "package"."""

    fact: str
    value: Value
    layout: str
    """Which form of text it was read from: "collect_env", "pip list"."""
    weight: int = PRINTED
    line: int = field(default=0, compare=False)
    """The number of the line, from 0, for what a later statement replaces."""


def normal(name: str) -> str:
    """Return the name of a distribution as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


VERSION = r"[0-9]{1,8}(?:\.[0-9A-Za-z]{1,20}){0,8}(?:[+-][0-9A-Za-z.]{1,60})?"
"""A version as packages have it; whole match only."""
DOTTED = (
    r"[0-9]{1,4}(?:\.[0-9]{1,8}){1,4}(?:\.?[a-z]{1,5}[0-9]{0,12}){0,3}(?:\+[0-9A-Za-z.]{1,60})?"
)
"""The same where nothing else tells that it is one: with a point in it."""
_TORCH = re.compile(r"0\.[1-4](?:\.|$)|[1-9]\.")
_COMPANION = re.compile(r"[01]\.")


def plausible(name: str, version: str) -> bool:
    """Tell whether *name* can have that version: lines of a listing may have been mixed up."""
    if name in ("torch", "pytorch"):
        return bool(_TORCH.match(version))
    if name in ("torchvision", "torchtext"):
        return bool(_COMPANION.match(version))
    return True
