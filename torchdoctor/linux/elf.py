"""What an ELF file (.so, a program) says of itself: what it needs, what it offers, which versions.

Standard library only, from a memory map or from bytes. Only what the dynamic loader reads is read:
the program headers and what the dynamic section points to, never the section headers, which a
stripped file need not have. The names that a file offers are taken as the hashes that its own hash
table holds, so that a libtorch_cpu.so of 400 MB with 80,000 names takes milliseconds.

Hostile files end in :class:`NotElf`, :class:`DamagedElf` or a remark in ``damage``, never in
another exception, in a read beyond the file, or in work that grows faster than the file.

Sources: "System V Application Binary Interface", chapters 4 and 5; "Linux Standard Base Core
Specification", chapters on symbol versioning and program headers; glibc, elf/elf.h.
"""

from __future__ import annotations

import array
import mmap
import os
import stat
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, repeat
from operator import mul

MACHINES: Mapping[int, str] = {
    3: "i386",
    20: "ppc",
    21: "ppc64",
    22: "s390",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv",
    258: "loongarch",
}
"""Names of the machine field, as ``uname -m`` spells them where it has one."""

_LOAD, _DYNAMIC, _INTERP, _STACK = 1, 2, 3, 0x6474E551
_EXECUTE = 1
_SHARED = 3
_GLOBAL = 1
_WEAK_VERSION = 2
_NO_DEFAULT = 0x800
_LONGEST_PATH = 4096
_LONGEST_CHAIN = 1 << 20
"""No bucket of a real table has that many symbols."""

# Tags of the dynamic section.
_NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ, _SONAME, _RPATH = 1, 4, 5, 6, 10, 14, 15
_RELA, _RELASZ, _PLTRELSZ, _PLTREL, _JMPREL = 7, 8, 2, 20, 23
_RUNPATH, _FLAGS_1, _GNU_HASH, _RELACOUNT = 29, 0x6FFFFFFB, 0x6FFFFEF5, 0x6FFFFFF9
_VERDEF, _VERDEFNUM, _VERNEED, _VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_VERSYM, _VERSION_NUMBER = 0x6FFFFFF0, 0x7FFF

Data = bytes | mmap.mmap


class NotElf(Exception):  # noqa: N818 - it says what the file is not
    """The file is not an ELF file: empty, no file at all, or something else."""


class DamagedElf(Exception):  # noqa: N818 - it says what the file is
    """The file starts as an ELF file, but its headers are cut or cannot be so."""


class _Hole(Exception):  # noqa: N818 - never leaves this module
    """Something that the file points to is not in it."""


@dataclass(frozen=True, slots=True)
class VersionNeed:
    """Versions that the file asks one library for; those it can do without are in ``weak``."""

    file: str
    versions: tuple[str, ...]
    weak: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Elf:
    """One ELF file.

    ``loads_end`` is where the file should end at the least. ``damage`` says which tables could not
    be read, and why; what was read of them until there is kept.
    """

    machine: str
    """x86_64, aarch64, ..., or the number in hexadecimal."""
    bits: int
    little: bool
    shared: bool
    """Whether it can be loaded into a process: a library, or a program that may lie anywhere."""
    size: int
    loads_end: int
    interpreter: str | None = None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: str | None = None
    runpath: str | None = None
    no_default: bool = False
    """Whether the default folders and the cache are not for its needs (DF_1_NODEFLIB)."""
    executable_stack: bool | None = None
    """None when it does not say, which the loader of x86 takes as yes."""
    wants: tuple[VersionNeed, ...] = ()
    offers: frozenset[str] = frozenset()
    """Versions that it defines; empty when it has none at all."""
    undefined: tuple[str, ...] = ()
    """Symbols that must be found elsewhere; those it can do without are left out."""
    asked_versions: Mapping[str, str] = field(default_factory=dict)
    """The version that it wants one of ``undefined`` in, where it says so."""
    defined: frozenset[int] = frozenset()
    """Hashes (:func:`hashed`) of the symbols that it offers."""
    damage: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        """Return whether the file ends before what its own headers announce."""
        return self.size < self.loads_end


def read(path: str | os.PathLike[str]) -> Elf:
    """Return what the file *path* says.

    Raises OSError when it cannot be opened, :class:`NotElf`, :class:`DamagedElf`.
    """
    # Opening a pipe would wait for ever.
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - a stat and nothing more
        raise NotElf("it is not a file")
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib would be slower
        if not os.fstat(file.fileno()).st_size:
            raise NotElf("it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return parse(view)


def parse(data: Data) -> Elf:
    """Return what the ELF file with the content *data* says.

    Raises :class:`NotElf`, :class:`DamagedElf`.
    """
    image = _Image(data)
    damage: list[str] = []

    def kept(what: str, found: Iterator[str]) -> tuple[str, ...]:
        some: list[str] = []
        try:
            some.extend(found)
        except _Hole as hole:
            damage.append(f"{what}: {hole}")
        return tuple(some)

    wants: list[VersionNeed] = []
    try:
        wants.extend(image.wants())
    except _Hole as hole:
        damage.append(f"needed versions: {hole}")
    needed = kept("needed", image.texts(_NEEDED))
    names = [next(iter(kept(w, image.texts(t))), None) for w, t in _NAMES]
    offers = kept("defined versions", image.offers())
    defined: frozenset[int] = frozenset()
    undefined: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    try:
        table = image.symbols()
        asked = image.asked(table)
        undefined = kept("undefined symbols", image.texts_at(asked.values()))
        defined = image.defined(table)
        versions = image.versions(dict(zip(asked, undefined, strict=False)))
    except _Hole as hole:
        damage.append(f"symbols: {hole}")
    return Elf(
        machine=MACHINES.get(image.machine, hex(image.machine)),
        bits=64 if image.wide else 32,
        little=image.order == "<",
        shared=image.kind == _SHARED,
        size=len(data),
        loads_end=image.loads_end,
        interpreter=image.interpreter,
        soname=names[0],
        needed=needed,
        rpath=names[1],
        runpath=names[2],
        no_default=bool(image.value(_FLAGS_1) & _NO_DEFAULT),
        executable_stack=image.executable_stack,
        wants=tuple(wants),
        offers=frozenset(offers),
        undefined=undefined,
        asked_versions=versions,
        defined=defined,
        damage=tuple(damage),
    )


_NAMES = (("soname", _SONAME), ("rpath", _RPATH), ("runpath", _RUNPATH))
_POWERS = [pow(33, n, 1 << 32) for n in range(1024, -1, -1)]


def hashed(name: bytes) -> int:
    """Return the hash of a symbol's name as :attr:`Elf.defined` has it.

    It is that of DT_GNU_HASH with its lowest bit set, which the table uses for something else.
    """
    last = len(_POWERS) - 1
    value = 5381
    for start in range(0, len(name), last):
        part = name[start : start + last]
        value = value * _POWERS[last - len(part)] + sum(map(mul, part, _POWERS[-len(part) :]))
    return (value & 0xFFFFFFFF) | 1


@dataclass(frozen=True, slots=True)
class _Symbols:
    """Where the symbols are: *count* of them at *start*; those from *first* on are offered."""

    start: int
    count: int
    first: int
    hashes: int | None
    """Where the hashes of the offered ones are; None without DT_GNU_HASH."""


class _Image:
    """The headers, and how an address of the loaded file is found in it."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._size = len(data)
        # Names that do not overlap fit into the file. Where they do not fit, they overlap, and
        # what they say could grow with the square of the file.
        self._names_left = 2 * self._size
        self.order = "<"
        if data[:4] != b"\x7fELF":
            raise NotElf("it does not start as a library does" if data else "it is empty")
        try:
            self._read_headers()
        except _Hole as hole:
            raise DamagedElf(f"its headers are cut: {hole}") from None
        self._read_dynamic()

    def _read_headers(self) -> None:
        kind, order = self._unpack("BB", 4)
        if kind not in {1, 2} or order not in {1, 2}:
            raise DamagedElf(f"it is of the unknown class {kind}, order {order}")
        self.wide = kind == 2  # noqa: PLR2004 - ELFCLASS64
        self.order = "<" if order == 1 else ">"
        self.kind, self.machine = self._unpack("HH", 16)
        (table,) = self._unpack("Q", 32) if self.wide else self._unpack("I", 28)
        size, count = self._unpack("HH", 54 if self.wide else 42)
        form = "IIQQQQ" if self.wide else "IIIIIII"
        if count and size < struct.calcsize(self.order + form):
            raise DamagedElf(f"its program headers have {size} bytes each")
        self.loads_end = 0
        self.interpreter: str | None = None
        self.executable_stack: bool | None = None
        self._dynamic: tuple[int, int] | None = None
        spans: list[tuple[int, int, int]] = []
        for i in range(count):
            row = self._unpack(form, table + size * i)
            if self.wide:
                kind, flags, place, address, _, length = row
            else:
                kind, place, address, _, length, _, flags = row
            if kind == _LOAD:
                self.loads_end = max(self.loads_end, place + length)
                spans.append((address, address + length, place))
            elif kind == _DYNAMIC:
                self._dynamic = place, length
            elif kind == _STACK:
                self.executable_stack = bool(flags & _EXECUTE)
            elif kind == _INTERP and place + length <= self._size:
                text = self._data[place : place + min(length, _LONGEST_PATH)].partition(b"\0")[0]
                self.interpreter = text.decode("utf-8", "surrogateescape")
        spans.sort()
        self._spans = spans
        self._starts = [span[0] for span in spans]

    def _read_dynamic(self) -> None:
        self._tags: dict[int, list[int]] = {}
        if self._dynamic is None:
            return
        place, length = self._dynamic
        form = self.order + ("qQ" if self.wide else "iI")
        size = struct.calcsize(form)
        stop = min(place + length, self._size)
        for offset in range(place, stop - size + 1, size):
            tag, value = struct.unpack_from(form, self._data, offset)
            if not tag:
                return
            self._tags.setdefault(tag & 0xFFFFFFFF, []).append(value)

    # ---- finding and reading ----

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        form = self.order + form
        if offset + struct.calcsize(form) > self._size:
            raise _Hole(f"something at {offset} lies beyond the end of the file at {self._size}")
        return struct.unpack_from(form, self._data, offset)

    def value(self, tag: int) -> int:
        """Return the value of the last *tag* in the dynamic section; 0 where there is none."""
        return self._tags.get(tag, [0])[-1]

    def _place(self, address: int) -> tuple[int, int]:
        """Return where in the file *address* of the loaded image is, and where its part ends."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            start, end, place = self._spans[index]
            if start <= address < end:
                offset = place + address - start
                if offset < self._size:
                    return offset, min(place + end - start, self._size)
                raise _Hole(f"{address:#x} lies beyond the end of the file at {self._size}")
        raise _Hole(f"{address:#x} lies in no segment")

    def _strings(self) -> tuple[int, int]:
        """Return from where to where the file holds the names."""
        start, stop = self._place(self.value(_STRTAB))
        return start, min(stop, start + self.value(_STRSZ))

    def _names(self, places: Iterable[int]) -> Iterator[bytes]:
        """Yield the name at each of *places* in the table of names."""
        start, stop = self._strings()
        find, data = self._data.find, self._data
        for place in places:
            first = start + place
            end = find(b"\0", first, stop) if first < stop else -1
            if end < 0:
                raise _Hole(f"the name at {place} has no end")
            self._names_left -= end - first + 1
            if self._names_left < 0:
                raise _Hole("its names overlap")
            yield data[first:end]

    def texts(self, tag: int) -> Iterator[str]:
        """Yield the texts that the dynamic section has under *tag*."""
        for name in self._names(self._tags.get(tag, ())):
            yield name.decode("utf-8", "surrogateescape")

    # ---- versions ----

    def wants(self) -> Iterator[VersionNeed]:
        """Yield which versions it asks each library for."""
        for offset, stop, (_, count, name, first, _) in self._chain(
            _VERNEED, _VERNEEDNUM, "HHIII", 4
        ):
            firm: list[int] = []
            weak: list[int] = []
            for _, _, (_, flags, _, text, _) in self._linked(
                offset + first, stop, count, "IHHII", 4
            ):
                (weak if flags & _WEAK_VERSION else firm).append(text)
            yield VersionNeed(
                next(self.texts_at((name,))),
                tuple(self.texts_at(firm)),
                tuple(self.texts_at(weak)),
            )

    def offers(self) -> Iterator[str]:
        """Yield the versions that it defines; the first is the name of the file itself."""
        for offset, stop, row in self._chain(_VERDEF, _VERDEFNUM, "HHHHIII", 6):
            _, _, _, count, _, first, _ = row
            if not count:
                continue
            (text,) = self._unpack("I", offset + first)
            if offset + first + 4 > stop:
                raise _Hole("a version lies beyond its segment")
            yield from self.texts_at((text,))

    def texts_at(self, places: Iterable[int]) -> Iterator[str]:
        return (name.decode("utf-8", "surrogateescape") for name in self._names(places))

    def _chain(
        self, tag: int, number: int, form: str, following: int
    ) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        if not self.value(tag):
            return
        offset, stop = self._place(self.value(tag))
        yield from self._linked(offset, stop, self.value(number), form, following)

    def _linked(
        self, offset: int, stop: int, count: int, form: str, following: int
    ) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yield (offset, stop, row) of rows of which each says how far away the next one is."""
        size = struct.calcsize(self.order + form)
        # Rows that do not overlap: more of them do not fit into the file.
        for _ in repeat(None, min(count, self._size // size)):
            if offset + size > stop:
                raise _Hole("a version lies beyond its segment")
            row = self._unpack(form, offset)
            yield offset, stop, row
            if not row[following]:
                return
            if row[following] < size:
                raise _Hole("its versions overlap")
            offset += row[following]

    # ---- symbols ----

    def symbols(self) -> _Symbols | None:
        """Return where the symbols are; None where there are none."""
        if not self.value(_SYMTAB):
            return None
        start, stop = self._place(self.value(_SYMTAB))
        size = 24 if self.wide else 16
        fit = (stop - start) // size
        if self.value(_GNU_HASH):
            first, count, hashes = self._gnu_hash()
            return _Symbols(start, min(count, fit), min(first, fit), hashes)
        if self.value(_HASH):
            place, _ = self._place(self.value(_HASH))
            _, count = self._unpack("II", place)
            if count > fit:
                raise _Hole(f"{count} symbols do not fit into their segment")
            return _Symbols(start, count, 0, None)
        return None

    def _gnu_hash(self) -> tuple[int, int, int]:
        """Return the first symbol that is offered, how many there are, where their hashes are."""
        place, stop = self._place(self.value(_GNU_HASH))
        buckets, first, words, _ = self._unpack("IIII", place)
        table = place + 16 + words * (8 if self.wide else 4)
        hashes = table + 4 * buckets
        if hashes > stop:
            raise _Hole("the table of hashes lies beyond its segment")
        last = max(self._numbers(table, buckets), default=0)
        if last < first:
            return first, first, hashes
        # The chain of the last bucket ends where the lowest bit is set.
        offset = hashes + 4 * (last - first)
        for at in range(offset, min(stop - 3, offset + 4 * _LONGEST_CHAIN), 4):
            (value,) = self._unpack("I", at)
            if value & 1:
                return first, first + (at - hashes) // 4 + 1, hashes
        raise _Hole("the table of hashes has no end")

    def _numbers(self, offset: int, count: int) -> array.array[int]:
        """Return *count* numbers of 32 bits, of a part of the file that is known to be there."""
        found = array.array("I")
        found.frombytes(self._data[offset : offset + 4 * count])
        if (self.order == "<") is not (sys.byteorder == "little"):
            found.byteswap()
        return found

    def asked(self, table: _Symbols | None) -> dict[int, int]:
        """Return number -> place of the name of each symbol that has to be found elsewhere.

        In the order they are looked for.
        """
        if table is None:
            return {}
        count = table.first if table.hashes is not None else table.count
        rows = self._rows(table, count)
        asked = {
            index: name
            for index, (name, info, section) in enumerate(rows, 1)
            if name and not section and info >> 4 == _GLOBAL
        }
        order = self._relocated()
        if order is None:
            return asked
        return {index: asked[index] for index in order if index in asked}

    def versions(self, symbols: Mapping[int, str]) -> dict[str, str]:
        """Return symbol -> version of those of number -> *symbols* that are wanted in one."""
        if not symbols or not self.value(_VERSYM):
            return {}
        places = {
            other & _VERSION_NUMBER: text
            for offset, stop, (_, count, _, first, _) in self._chain(
                _VERNEED, _VERNEEDNUM, "HHIII", 4
            )
            for _, _, (_, _, other, text, _) in self._linked(
                offset + first, stop, count, "IHHII", 4
            )
        }
        names = dict(zip(places, self.texts_at(places.values()), strict=True))
        start, stop = self._place(self.value(_VERSYM))
        count = min(max(symbols) + 1, (stop - start) // 2)
        numbers = array.array("H")
        numbers.frombytes(self._data[start : start + 2 * count])
        if (self.order == "<") is not (sys.byteorder == "little"):
            numbers.byteswap()
        return {
            symbol: names[number]
            for index, symbol in symbols.items()
            if index < len(numbers) and (number := numbers[index] & _VERSION_NUMBER) in names
        }

    def _relocated(self) -> dict[int, None] | None:
        """Return the symbols that relocations name, in their order; None where it is not known.

        A symbol that no relocation names is never looked for.
        """
        if not self.wide or (self.value(_JMPREL) and self.value(_PLTREL) != _RELA):
            return None
        found: dict[int, None] = {}
        # The first ones of DT_RELA are said to name none.
        tables = ((_RELA, _RELASZ, self.value(_RELACOUNT)), (_JMPREL, _PLTRELSZ, 0))
        for tag, length, without in tables:
            if not self.value(tag):
                continue
            start, stop = self._place(self.value(tag))
            count = min(self.value(length), stop - start) // 24
            start += 24 * min(without, count)
            count -= min(without, count)
            numbers = array.array("Q")
            numbers.frombytes(self._data[start : start + 24 * count])
            if (self.order == "<") is not (sys.byteorder == "little"):
                numbers.byteswap()
            found.update(dict.fromkeys(number >> 32 for number in numbers[1::3]))
        return found

    def defined(self, table: _Symbols | None) -> frozenset[int]:
        """Return the hashes of the symbols that it offers."""
        if table is None:
            return frozenset()
        if table.hashes is not None:
            stored = self._numbers(table.hashes, table.count - table.first)
            return frozenset(value | 1 for value in stored)
        places = [
            name
            for name, info, section in self._rows(table, table.count)
            if section and name and info >> 4
        ]
        return frozenset(map(hashed, self._names(places)))

    def _rows(self, table: _Symbols, count: int) -> Iterator[tuple[int, int, int]]:
        """Yield place of the name, binding and type, and section of symbols 1 to *count* - 1."""
        form, size = ("IBxH16x", 24) if self.wide else ("I8xBxH", 16)
        view = self._data[table.start : table.start + size * count]
        return islice(struct.iter_unpack(self.order + form, view), 1, None)  # the first is none
