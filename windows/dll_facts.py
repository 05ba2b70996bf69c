"""DLL facts: what has to be known of a DLL to tell whether it would load, small enough to send.

A snapshot carries these instead of the DLLs. Symbols that a file offers are kept as 32-bit hashes
(60,000 of them fit into 320 kB); symbols that it needs are kept by name, so that a missing one
can be named, except where :func:`small` left the hash only.

Two names with one hash would hide a missing symbol, never make one up: one chance in 70,000 for
each name that the largest DLL of torch lacks.
"""

from __future__ import annotations

import base64
import binascii
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from . import pe

T = TypeVar("T")
Version = tuple[int, ...]

_MOST_NUMBERS = 1 << 22
"""More hashes or ordinals than this in one list are no facts about a real DLL."""
_LONGEST_TEXT = 1 << 16
_LONGEST_NAME = 1 << 14
_LONGEST_FILE = 260
_HIGHEST = 1 << 64


class NotFacts(Exception):  # noqa: N818 - it says what the object is not
    """The object read from JSON is not what :func:`to_json` writes."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a file takes from one DLL; ``hashes`` are names of which only the hash is known."""

    dll: str
    names: tuple[str, ...] = ()
    ordinals: tuple[int, ...] = ()
    hashes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DllFacts:
    """What is known of one file.

    ``broken`` says why it is no whole PE file; then the rest may be empty. ``version`` is the
    fixed FileVersion, None when the file has none (as torch's own DLLs have none).
    """

    name: str
    size: int = 0
    broken: str | None = None
    machine: str = "x64"
    linker: tuple[int, int] | None = None
    version: Version | None = None
    signed: bool = False
    size_of_image: int = 0
    strings: Mapping[str, str] = field(default_factory=dict)
    """ProductName, FileDescription, CompanyName of the version resource, where there are any."""
    needs: tuple[Need, ...] = ()
    delayed: tuple[Need, ...] = ()
    exports: frozenset[int] = frozenset()
    """Hashes of the names it offers."""
    ordinals: tuple[tuple[int, int], ...] = ()
    """Ordinals it offers, as ranges; both ends are in."""
    damage: tuple[str, ...] = ()

    def lacks(self, need: Need) -> tuple[str, ...]:
        """Return what of *need* this file does not offer; ordinals as ``#12``, hashes as ``~``."""
        missing = [name for name in need.names if hashed(name) not in self.exports]
        missing += [f"~{value:08x}" for value in need.hashes if value not in self.exports]
        missing += [f"#{n}" for n in need.ordinals if not self._offers(n)]
        return tuple(missing)

    def needs_from(self, dll: str) -> Need | None:
        """Return what it takes from *dll* when it is loaded."""
        return next((need for need in self.needs if need.dll.lower() == dll.lower()), None)

    def _offers(self, ordinal: int) -> bool:
        return any(first <= ordinal <= last for first, last in self.ordinals)


def hashed(name: str) -> int:
    """Return the hash of a symbol's name."""
    return zlib.crc32(name.encode("latin-1", "replace"))


def read(path: str) -> DllFacts:
    """Return the facts of the file *path*; a file that is no PE file has facts, too.

    Raises OSError when it cannot be opened.
    """
    name = os.path.basename(path)  # noqa: PTH119 - a plain string in and out
    size = os.path.getsize(path)  # noqa: PTH202
    try:
        return of(pe.read(path), name)
    except (pe.NotPe, pe.DamagedPe) as reason:
        return DllFacts(name, size, broken=str(reason), machine="")


def of(file: pe.Pe, name: str) -> DllFacts:
    """Return the facts of *file*, which is called *name*."""
    broken = None
    if file.size < file.sections_end:
        broken = f"it ends at {file.size:,} of at least {file.sections_end:,} bytes"
    version = file.version or pe.Version()
    kept = ("ProductName", "FileDescription", "CompanyName")
    return DllFacts(
        name=name,
        size=file.size,
        broken=broken,
        machine=file.machine,
        linker=file.linker,
        version=version.file,
        signed=file.signed,
        size_of_image=file.size_of_image,
        strings={k: version.strings[k][:200] for k in kept if version.strings.get(k)},
        needs=tuple(map(_need, file.imports)),
        delayed=tuple(map(_need, file.delayed)),
        exports=frozenset(map(hashed, file.exports)),
        ordinals=ranges(file.ordinals),
        damage=file.damage,
    )


def _need(taken: pe.Import) -> Need:
    """Return *taken* as a need; a name as long as no compiler makes one is kept as its hash."""
    names = tuple(name for name in taken.names if len(name) <= _LONGEST_NAME)
    hashes = tuple(hashed(name) for name in taken.names if len(name) > _LONGEST_NAME)
    return Need(taken.dll[:_LONGEST_FILE], names, taken.ordinals, hashes)


def ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return *numbers* as ranges, both ends in."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number <= found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def small(facts: DllFacts, *, longest: int = 40, offers: frozenset[int] | None = None) -> DllFacts:
    """Return *facts* with less in them.

    Needed names longer than *longest* become hashes; of what the file offers, only *offers* stay.
    """

    def shorter(need: Need) -> Need:
        hashes = tuple(sorted(hashed(name) for name in need.names if len(name) > longest))
        names = tuple(name for name in need.names if len(name) <= longest)
        return replace(need, names=names, hashes=tuple(sorted({*need.hashes, *hashes})))

    return replace(
        facts,
        needs=tuple(map(shorter, facts.needs)),
        delayed=tuple(map(shorter, facts.delayed)),
        exports=facts.exports if offers is None else facts.exports & offers,
    )


# ---- a folder of a disk -----------------------------------------------------------------------


class OnDisk(Mapping[str, DllFacts | None]):
    """The DLLs of a folder by lower-case name: listed once, each file read when asked for.

    A file that cannot be opened is there, with None for its facts. Of two names that differ in
    case only, as a copy on another system may have them, the first in order counts.
    """

    def __init__(self, path: str) -> None:
        """List the folder *path*; one that is not there has no files."""
        self._path = path
        self._known: dict[str, DllFacts | None] = {}
        try:
            with os.scandir(path) as entries:
                names = sorted(e.name for e in entries if e.name.lower().endswith(_KINDS))
        except OSError:
            names = []
        self._names = {name.lower(): name for name in reversed(names)}

    def __getitem__(self, name: str) -> DllFacts | None:
        real = self._names[name]
        if name not in self._known:
            try:
                self._known[name] = read(os.path.join(self._path, real))  # noqa: PTH118
            except OSError:
                self._known[name] = None
        return self._known[name]

    def was_read(self, name: str) -> bool:
        """Return whether the facts of *name* were asked for."""
        return name in self._known

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


_KINDS = (".dll", ".pyd")


# ---- JSON -------------------------------------------------------------------------------------


def to_json(facts: DllFacts) -> dict[str, object]:
    """Return *facts* as an object for JSON, without what is empty."""
    whole: dict[str, object] = {
        "name": facts.name,
        "size": facts.size,
        "broken": facts.broken,
        "machine": facts.machine,
        "linker": list(facts.linker) if facts.linker else None,
        "version": ".".join(map(str, facts.version)) if facts.version else None,
        "signed": facts.signed,
        "size_of_image": facts.size_of_image,
        "strings": dict(facts.strings),
        "needs": [_need_to_json(need) for need in facts.needs],
        "delayed": [_need_to_json(need) for need in facts.delayed],
        "exports": _pack(sorted(facts.exports)),
        "ordinals": [list(pair) for pair in facts.ordinals],
        "damage": list(facts.damage),
    }
    return {key: value for key, value in whole.items() if value or key in {"name", "machine"}}


def _need_to_json(need: Need) -> dict[str, object]:
    whole: dict[str, object] = {
        "dll": need.dll,
        "names": list(need.names),
        "ordinals": list(need.ordinals),
        "hashes": _pack(sorted(need.hashes)),
    }
    return {key: value for key, value in whole.items() if value or key == "dll"}


def from_json(value: object) -> DllFacts:
    """Return the facts that :func:`to_json` made *value* of.

    Raises :class:`NotFacts`, whatever *value* is.
    """
    entry = _object(value)
    linker = _numbers(entry.get("linker", []))
    version = _text(entry.get("version") or "")
    strings = _object(entry.get("strings", {}))
    return DllFacts(
        name=_text(entry.get("name")),
        size=_number(entry.get("size", 0)),
        broken=None if entry.get("broken") is None else _text(entry["broken"]),
        machine=_text(entry.get("machine", "x64")),
        linker=_pair(linker) if linker else None,
        version=_version(version),
        signed=entry.get("signed", False) is True,
        size_of_image=_number(entry.get("size_of_image", 0)),
        strings={_text(key): _text(text) for key, text in strings.items()},
        needs=_list(entry.get("needs", []), _need_from_json),
        delayed=_list(entry.get("delayed", []), _need_from_json),
        exports=frozenset(_unpack(entry.get("exports", ""))),
        ordinals=_list(entry.get("ordinals", []), lambda pair: _pair(_numbers(pair))),
        damage=_list(entry.get("damage", []), _text),
    )


def _need_from_json(value: object) -> Need:
    entry = _object(value)
    return Need(
        dll=_text(entry.get("dll")),
        names=_list(entry.get("names", []), _text),
        ordinals=_numbers(entry.get("ordinals", [])),
        hashes=_unpack(entry.get("hashes", "")),
    )


def _pack(numbers: list[int]) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}I", *numbers)).decode("ascii")


def _unpack(value: object) -> tuple[int, ...]:
    if not isinstance(value, str) or len(value) > 6 * _MOST_NUMBERS:
        raise NotFacts("hashes are a text in base64")
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise NotFacts("hashes are a text in base64") from None
    if len(data) % 4:
        raise NotFacts("hashes are of four bytes each")
    return struct.unpack(f"<{len(data) // 4}I", data)


def _version(text: str) -> Version | None:
    if not text:
        return None
    parts = text.split(".")
    if len(parts) > 4 or not all(p.isascii() and p.isdigit() and len(p) < 6 for p in parts):  # noqa: PLR2004
        raise NotFacts("a version is of numbers and dots")
    return tuple(map(int, parts))


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise NotFacts("not an object")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise NotFacts("not a text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _HIGHEST:
        raise NotFacts("not a number")
    return value


def _numbers(value: object) -> tuple[int, ...]:
    return _list(value, _number)


def _pair(value: tuple[int, ...]) -> tuple[int, int]:
    if len(value) != 2:  # noqa: PLR2004
        raise NotFacts("not a pair")
    return value[0], value[1]


def _list(value: object, each: Callable[[object], T]) -> tuple[T, ...]:
    if not isinstance(value, list) or len(value) > _MOST_NUMBERS:
        raise NotFacts("not a list")
    return tuple(map(each, value))
