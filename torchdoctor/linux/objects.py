"""Facts of a shared object: what has to be known of it to tell whether it would load.

A snapshot carries these instead of the files. What a file offers is kept as hashes, and of what it
needs the names are kept only where a missing one should be named (:func:`small`).

Two names with one hash would hide a missing symbol, never make one up: one chance in 25,000 for
each name that the largest library of torch lacks.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

from . import elf
from .elf import VersionNeed, hashed

T = TypeVar("T")

_MOST = 1 << 20
"""More entries than this in one list are no facts about a real library."""
_LONGEST_TEXT = 1 << 14
_HIGHEST = 1 << 64
_TEXTS = frozenset(("broken", "interpreter", "soname", "rpath", "runpath"))
"""Those of which an empty text is not the same as none."""


class NotFacts(Exception):  # noqa: N818 - it says what the object is not
    """The object read from JSON is not what :func:`to_json` writes."""


@dataclass(frozen=True, slots=True)
class SharedObject:
    """What is known of one file.

    ``broken`` says why it is no whole ELF file; then the rest may be empty. ``other`` says that
    it is whole, but for another processor.
    """

    size: int = 0
    broken: str | None = None
    machine: str = "x86_64"
    bits: int = 64
    interpreter: str | None = None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: str | None = None
    runpath: str | None = None
    no_default: bool = False
    executable_stack: bool | None = False
    """None when the file does not say."""
    wants: tuple[VersionNeed, ...] = ()
    offers: frozenset[str] = frozenset()
    symbols: tuple[str, ...] = ()
    """Symbols that it looks for, in that order."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The version that it wants one of ``symbols`` in."""
    more_symbols: tuple[int, ...] = ()
    """Hashes of further ones, of which the name was left out."""
    defined: frozenset[int] = frozenset()
    """Hashes of the symbols that it offers, as far as any other file asks for them."""
    damage: tuple[str, ...] = ()


def read(path: str) -> SharedObject:
    """Return the facts of the file *path*; a file that is no ELF file has facts, too.

    Raises OSError when it cannot be opened.
    """
    try:
        return of(elf.read(path))
    except (elf.NotElf, elf.DamagedElf) as reason:
        size = os.path.getsize(path)  # noqa: PTH202 - a plain string in
        return SharedObject(size, broken=str(reason), machine="")


def of(file: elf.Elf) -> SharedObject:
    """Return the facts of *file*."""
    broken = None
    if file.truncated:
        broken = f"it ends at {file.size:,} of at least {file.loads_end:,} bytes"
    return SharedObject(
        size=file.size,
        broken=broken,
        machine=file.machine,
        bits=file.bits,
        interpreter=file.interpreter,
        soname=file.soname,
        needed=file.needed,
        rpath=file.rpath,
        runpath=file.runpath,
        no_default=file.no_default,
        executable_stack=file.executable_stack,
        wants=file.wants,
        offers=file.offers,
        symbols=file.undefined,
        versions=file.asked_versions,
        defined=file.defined,
        damage=file.damage,
    )


@lru_cache(1 << 18)
def symbol_hash(name: str) -> int:
    """Return the hash of a symbol's name."""
    return hashed(name.encode("utf-8", "surrogateescape"))


def small(facts: SharedObject, *, named: Container[int], asked: frozenset[int]) -> SharedObject:
    """Return *facts* with less in them.

    Of the symbols that it looks for, those whose hash is not in *named* lose their names; of those
    that it offers, only *asked* stay.
    """
    names: list[str] = []
    hashes: list[int] = []
    for name in facts.symbols:
        value = symbol_hash(name)
        if value in named:
            names.append(name)
        else:
            hashes.append(value)
    return replace(
        facts,
        symbols=tuple(names),
        versions=versions_of(facts.versions, names),
        more_symbols=(*facts.more_symbols, *hashes),
        defined=facts.defined & asked,
    )


def versions_of(versions: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return those of *versions* that are of *names*."""
    return {name: versions[name] for name in names if name in versions}


# ---- JSON -------------------------------------------------------------------------------------


def to_json(facts: SharedObject) -> dict[str, object]:
    """Return *facts* as an object for JSON, without what is empty."""
    whole: dict[str, object] = {
        "size": facts.size,
        "broken": facts.broken,
        "machine": facts.machine,
        "bits": facts.bits,
        "interpreter": facts.interpreter,
        "soname": facts.soname,
        "needed": list(facts.needed),
        "rpath": facts.rpath,
        "runpath": facts.runpath,
        "no_default": facts.no_default,
        "executable_stack": facts.executable_stack,
        "wants": [[want.file, list(want.versions), list(want.weak)] for want in facts.wants],
        "offers": sorted(facts.offers),
        "symbols": list(facts.symbols),
        "versions": dict(facts.versions),
        "more_symbols": _pack(facts.more_symbols),
        "defined": _pack(sorted(facts.defined)),
        "damage": list(facts.damage),
    }
    kept = {key: value for key, value in whole.items() if value or (value == "" and key in _TEXTS)}
    return kept | {"executable_stack": facts.executable_stack, "machine": facts.machine}


def from_json(value: object) -> SharedObject:
    """Return the facts that :func:`to_json` made *value* of.

    Raises :class:`NotFacts`, whatever *value* is.
    """
    if not isinstance(value, dict):
        raise NotFacts("not an object")
    entry: Mapping[str, object] = value
    stack = entry.get("executable_stack")
    if stack is not None and not isinstance(stack, bool):
        raise NotFacts("not a truth value")
    return SharedObject(
        size=_number(entry.get("size", 0)),
        broken=optional(entry.get("broken")),
        machine=text(entry.get("machine")),
        bits=_number(entry.get("bits", 64)),
        interpreter=optional(entry.get("interpreter")),
        soname=optional(entry.get("soname")),
        needed=texts(entry.get("needed", [])),
        rpath=optional(entry.get("rpath")),
        runpath=optional(entry.get("runpath")),
        no_default=entry.get("no_default", False) is True,
        executable_stack=stack,
        wants=_list(entry.get("wants", []), _want),
        offers=frozenset(texts(entry.get("offers", []))),
        symbols=texts(entry.get("symbols", [])),
        versions=_pairs(entry.get("versions", {})),
        more_symbols=_unpack(entry.get("more_symbols", "")),
        defined=frozenset(_unpack(entry.get("defined", ""))),
        damage=texts(entry.get("damage", [])),
    )


def _pairs(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > _MOST:
        raise NotFacts("not an object")
    return {text(key): text(each) for key, each in value.items()}


def _want(value: object) -> VersionNeed:
    if not isinstance(value, list) or len(value) != 3:  # noqa: PLR2004 - as written above
        raise NotFacts("not a need of versions")
    return VersionNeed(text(value[0]), texts(value[1]), texts(value[2]))


def _pack(numbers: tuple[int, ...] | list[int]) -> str:
    """Return *numbers* as short words: a long one would be redacted as a token."""
    return struct.pack(f"<{len(numbers)}I", *numbers).hex(" ", 4)


def _unpack(value: object) -> tuple[int, ...]:
    if not isinstance(value, str) or len(value) > 9 * _MOST:
        raise NotFacts("hashes are a text")
    try:
        data = bytes.fromhex(value)
    except ValueError:
        raise NotFacts("hashes are a text in hexadecimal") from None
    if len(data) % 4:
        raise NotFacts("hashes are of four bytes each")
    return struct.unpack(f"<{len(data) // 4}I", data)


def text(value: object) -> str:
    """Return *value*, a text; raises NotFacts."""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise NotFacts("not a text")
    return value


def optional(value: object) -> str | None:
    """Return *value*, a text or None; raises NotFacts."""
    return None if value is None else text(value)


def texts(value: object) -> tuple[str, ...]:
    """Return *value*, a list of texts; raises NotFacts."""
    return _list(value, text)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _HIGHEST:
        raise NotFacts("not a number")
    return value


def _list(value: object, each: Callable[[object], T]) -> tuple[T, ...]:
    if not isinstance(value, list) or len(value) > _MOST:
        raise NotFacts("not a list")
    return tuple(map(each, value))
