"""What a PE file (.dll, .pyd, .exe) says of itself: what it needs, what it offers, which version.

Standard library only, from a memory map or from bytes. Nothing is cut short: every loop and every
name is bounded by the size of the file and by nothing else, so that a torch_cpu.dll with 60,000
exports is read whole. Hostile files end in :class:`NotPe`, :class:`DamagedPe` or a remark in
``damage``, never in another exception, in a read beyond the file, or in work that grows faster
than the file.

Source: Microsoft, "PE Format" and "VS_VERSIONINFO structure",
https://learn.microsoft.com/windows/win32/debug/pe-format
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

MACHINES: Mapping[int, str] = {0x14C: "x86", 0x8664: "x64", 0xAA64: "arm64", 0x1C4: "arm"}
"""Names of the machine field, as Microsoft's installers spell them."""

_EXPORTS, _IMPORTS, _RESOURCES, _CERTIFICATES, _DELAYED = 0, 1, 2, 4, 13
_DIRECTORIES = 16
_PE32, _PE32_PLUS = 0x10B, 0x20B
_SECTION = 40
_HIGHEST_ADDRESS = 0x7FFFFFFF
_RT_VERSION = 16
_FIXED_LENGTH = 52
_FIXED_SIGNATURE = 0xFEEF04BD
_BLOCK_HEADER = 6
_RAW_ALIGNMENT = 0x200
"""The loader rounds a section's place in the file down to this."""

Data = bytes | mmap.mmap


class NotPe(Exception):  # noqa: N818 - it says what the file is not
    """The file is not a PE file: empty, no file at all, or something else."""


class DamagedPe(Exception):  # noqa: N818 - it says what the file is
    """The file starts as a PE file, but its headers are cut or cannot be so."""


class _Hole(Exception):  # noqa: N818 - never leaves this module
    """Something that the file points to is not in it."""


@dataclass(frozen=True, slots=True)
class Import:
    """What the file takes from one DLL, by name and by ordinal, in the order of the file."""

    dll: str
    names: tuple[str, ...] = ()
    ordinals: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Version:
    """The version resource: the fixed numbers, and the strings of its first language."""

    file: tuple[int, int, int, int] | None = None
    product: tuple[int, int, int, int] | None = None
    strings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pe:
    """One PE file.

    ``sections_end`` and ``certificate_end`` are where the file should end at the least; Windows
    refuses to load a file that ends before ``sections_end``. ``damage`` says which tables could
    not be read, and why; what was read of them until there is kept.
    """

    machine: str
    """x64, x86, arm64, arm, or the number in hexadecimal."""
    linker: tuple[int, int]
    subsystem: int
    subsystem_version: tuple[int, int]
    is_dll: bool
    timestamp: int
    checksum: int
    size_of_image: int
    size: int
    sections_end: int
    certificate_end: int
    signed: bool
    imports: tuple[Import, ...] = ()
    delayed: tuple[Import, ...] = ()
    exports: frozenset[str] = frozenset()
    ordinals: frozenset[int] = frozenset()
    forwards: Mapping[str, str] = field(default_factory=dict)
    """Exported names that stand for another DLL's: ``NTDLL.RtlAllocateHeap``."""
    version: Version | None = None
    damage: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        """Return whether the file ends before what its own headers announce."""
        return self.size < max(self.sections_end, self.certificate_end)


def read(path: str | os.PathLike[str]) -> Pe:
    """Return what the file *path* says.

    Raises OSError when it cannot be opened, :class:`NotPe`, :class:`DamagedPe`.
    """
    # Opening a pipe would wait for ever.
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - a stat and nothing more
        raise NotPe("it is not a file")
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib would be slower
        if not os.fstat(file.fileno()).st_size:
            raise NotPe("it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return parse(view)


def parse(data: Data) -> Pe:
    """Return what the PE file with the content *data* says.

    Raises :class:`NotPe`, :class:`DamagedPe`.
    """
    image = _Image(data)
    damage: list[str] = []
    imports = _kept(image.imports(), "imports", damage)
    delayed = _kept(image.delayed(), "delay imports", damage)
    offers = _Exports()
    try:
        image.exports(offers)
    except _Hole as hole:
        damage.append(f"exports: {hole}")
    version = None
    try:
        version = image.version()
    except _Hole as hole:
        damage.append(f"version: {hole}")
    certificate, length = image.directory(_CERTIFICATES)
    return Pe(
        machine=MACHINES.get(image.machine, hex(image.machine)),
        linker=image.linker,
        subsystem=image.subsystem,
        subsystem_version=image.subsystem_version,
        is_dll=bool(image.characteristics & 0x2000),
        timestamp=image.timestamp,
        checksum=image.checksum,
        size_of_image=image.size_of_image,
        size=len(data),
        sections_end=image.sections_end,
        certificate_end=certificate + length if length else 0,
        signed=length > 0,
        imports=tuple(imports),
        delayed=tuple(delayed),
        exports=frozenset(offers.names),
        ordinals=frozenset(offers.ordinals),
        forwards=offers.forwards,
        version=version,
        damage=tuple(damage),
    )


def _kept(imports: Iterator[Import], what: str, damage: list[str]) -> list[Import]:
    """Return what *imports* yields until a hole, which goes to *damage*."""
    kept: list[Import] = []
    try:
        kept.extend(imports)
    except _Hole as hole:
        damage.append(f"{what}: {hole}")
    return kept


@dataclass(slots=True)
class _Exports:
    names: list[str] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    forwards: dict[str, str] = field(default_factory=dict)


class _Image:
    """The headers, and how an address of the loaded image is found in the file."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._size = len(data)
        # Names and lists that do not overlap fit into the file. Where they do not fit, they
        # overlap, and what they say could grow with the square of the file.
        self._names_left = self._lists_left = self._size
        if self._size < 2 or data[:2] != b"MZ":  # noqa: PLR2004 - its length
            raise NotPe("it does not start as a program or DLL does" if data else "it is empty")
        try:
            self._read_headers()
        except _Hole as hole:
            raise DamagedPe(f"its headers are cut: {hole}") from None

    def _read_headers(self) -> None:
        (start,) = self._unpack("<I", 0x3C)
        if start + 4 > self._size or self._data[start : start + 4] != b"PE\0\0":
            if start >= self._size:
                raise DamagedPe("it ends before the PE header")
            raise NotPe("it is a DOS program, not a PE file")
        self.machine, sections, self.timestamp, _, _, length, self.characteristics = self._unpack(
            "<HHIIIHH", start + 4
        )
        self._base = start + 24
        (magic,) = self._unpack("<H", self._base)
        if magic not in {_PE32, _PE32_PLUS}:
            raise DamagedPe(f"its optional header is of the unknown kind {magic:#x}")
        self._plus = magic == _PE32_PLUS
        self.linker = self._pair("<BB", self._base + 2)
        form, place = ("<Q", 24) if self._plus else ("<I", 28)
        (self.image_base,) = self._unpack(form, self._base + place)
        self.subsystem_version = self._pair("<HH", self._base + 48)
        self.size_of_image, self._headers, self.checksum = self._unpack("<III", self._base + 56)
        (self.subsystem,) = self._unpack("<H", self._base + 68)
        table = self._base + (112 if self._plus else 96)
        (count,) = self._unpack("<I", table - 4)
        self._directories = [
            self._pair("<II", table + 8 * i) for i in range(min(count, _DIRECTORIES))
        ]
        self._read_sections(self._base + length, sections)

    def _read_sections(self, table: int, count: int) -> None:
        self.sections_end = 0
        sections: list[tuple[int, int, int, int]] = []
        for i in range(count):
            virtual, address, length, place = self._unpack("<8xIIII", table + _SECTION * i)
            if length:
                self.sections_end = max(self.sections_end, place + length)
            place -= place % _RAW_ALIGNMENT
            sections.append(
                (address, address + max(virtual, length), place, length if place else 0)
            )
        sections.sort()
        self._sections = sections
        self._starts = [section[0] for section in sections]

    def directory(self, index: int) -> tuple[int, int]:
        """Return address and length of a data directory; zeros where there is none."""
        address, length = (0, 0) if index >= len(self._directories) else self._directories[index]
        return (address, length) if address else (0, 0)

    # ---- finding and reading ----

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        if offset + struct.calcsize(form) > self._size:
            raise _Hole(f"something at {offset} lies beyond the end of the file at {self._size}")
        return struct.unpack_from(form, self._data, offset)

    def _pair(self, form: str, offset: int) -> tuple[int, int]:
        first, second = self._unpack(form, offset)
        return first, second

    def _span(self, address: int) -> tuple[int, int]:
        """Return from where to where the file holds the image from *address* on.

        The span is empty where the image is filled with zeros.
        """
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            start, end, place, length = self._sections[index]
            if address < end:
                offset, stop = place + address - start, place + length
                if offset >= stop:
                    return 0, 0
                if offset >= self._size:
                    raise _Hole(f"{address:#x} lies beyond the end of the file at {self._size}")
                return offset, min(stop, self._size)
        if address < self._headers and address < self._size:
            return address, min(self._headers, self._size)
        raise _Hole(f"{address:#x} lies in no section")

    def _text(self, address: int) -> str:
        """Return the text at *address*, up to its zero byte."""
        return next(self._texts((address,)))

    def _texts(self, addresses: Iterable[int]) -> Iterator[str]:
        """Yield the text at each of *addresses*."""
        find, data = self._data.find, self._data
        first = last = shift = stop = 0
        for address in addresses:
            # There can be very many, nearly all of them in one section.
            if not first <= address < last:
                start, stop = self._span(address)
                first, last, shift = address, address + stop - start, start - address
            start = address + shift
            end = find(b"\0", start, stop)
            if end < 0:  # the rest of the section is zeros
                end = stop
            self._names_left -= end - start
            if self._names_left < 0:
                raise _Hole("its names overlap")
            yield str(data[start:end], "latin-1")

    # ---- what it needs ----

    def imports(self) -> Iterator[Import]:
        """Yield what has to be there when the file is loaded."""
        for lookup, _, _, name, bound in self._rows(_IMPORTS, "<5I", 3):
            yield Import(self._text(name), *self._list(lookup or bound))

    def delayed(self) -> Iterator[Import]:
        """Yield what is looked for at the first call only."""
        for attributes, name, _, _, lookup, _, _, _ in self._rows(_DELAYED, "<8I", 1):
            # Old 32-bit files have addresses in memory here, not relative to the image.
            base = 0 if attributes & 1 or self._plus else self.image_base
            if name < base or lookup < base:
                raise _Hole("an address lies before the image")
            yield Import(self._text(name - base), *self._list(lookup - base))

    def _rows(self, index: int, form: str, name: int) -> Iterator[tuple[int, ...]]:
        """Yield the rows of a directory up to the one without a *name*."""
        address, _ = self.directory(index)
        if not address:
            return
        start, stop = self._span(address)
        size = struct.calcsize(form)
        for offset in range(start, stop - size + 1, size):
            row = struct.unpack_from(form, self._data, offset)
            if not row[name]:
                return
            yield row

    def _list(self, address: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return names and ordinals of the thunk list at *address*."""
        size, code, flag = (8, "Q", 1 << 63) if self._plus else (4, "I", 1 << 31)
        places: list[int] = []
        ordinals: list[int] = []
        for thunk in self._numbers(address, size, code):
            if thunk & flag:
                ordinals.append(thunk & 0xFFFF)
            elif thunk > _HIGHEST_ADDRESS:
                raise _Hole(f"{thunk:#x} is no address of a name")
            else:
                places.append(thunk + 2)
        return tuple(self._texts(places)), tuple(ordinals)

    def _numbers(self, address: int, size: int, code: str) -> Iterator[int]:
        """Yield the numbers from *address* on, up to a zero."""
        start, stop = self._span(address)
        step = 512
        while start + size <= stop:
            count = min(step, (stop - start) // size)
            some: tuple[int, ...] = struct.unpack_from(f"<{count}{code}", self._data, start)
            ended = 0 in some
            some = some[: some.index(0)] if ended else some
            self._lists_left -= size * len(some)
            if self._lists_left < 0:
                raise _Hole("its lists overlap")
            yield from some
            if ended:
                return
            start += size * count

    # ---- what it offers ----

    def exports(self, offers: _Exports) -> None:
        """Put into *offers* what other files may take from this one."""
        address, length = self.directory(_EXPORTS)
        if not address:
            return
        start, stop = self._span(address)
        if start + 40 > stop:
            raise _Hole("the table is cut")
        base, functions, names, function_list, name_list, ordinal_list = struct.unpack_from(
            "<6I", self._data, start + 16
        )
        targets = self._array(function_list, functions, "I", 4)
        offers.ordinals.extend(base + i for i, target in enumerate(targets) if target)
        places = self._array(name_list, names, "I", 4)
        indices = self._array(ordinal_list, names, "H", 2)
        last = address + length
        for name, index in zip(self._texts(places), indices, strict=True):
            offers.names.append(name)
            if index < functions and address <= targets[index] < last:
                offers.forwards[name] = self._text(targets[index])

    def _array(self, address: int, count: int, code: str, size: int) -> tuple[int, ...]:
        if not count:
            return ()
        start, stop = self._span(address)
        if start + size * count > stop:
            raise _Hole(f"a list of {count} does not fit where it is said to be")
        return struct.unpack_from(f"<{count}{code}", self._data, start)

    # ---- its version ----

    def version(self) -> Version | None:
        """Return the version resource; None when there is none."""
        address, _ = self.directory(_RESOURCES)
        if not address:
            return None
        root, stop = self._span(address)
        offset = root
        # Kind, name, language: three levels, so a directory that points at itself does no harm.
        for wanted in (_RT_VERSION, None, None):
            entry = self._entry(offset, stop, wanted)
            if entry is None:
                return None
            offset = root + (entry & 0x7FFFFFFF)
        if offset + 16 > stop:
            raise _Hole("the resources are cut")
        place, length = struct.unpack_from("<II", self._data, offset)
        start, end = self._span(place)
        if start + length > end:
            raise _Hole("the resource is cut")
        return _version(bytes(self._data[start : start + length]))

    def _entry(self, offset: int, stop: int, wanted: int | None) -> int | None:
        """Return where the entry *wanted* (None: the first) of a resource directory leads to."""
        if offset + 16 > stop:
            raise _Hole("the resources are cut")
        named, numbered = struct.unpack_from("<HH", self._data, offset + 12)
        for i in range(named + numbered):
            at = offset + 16 + 8 * i
            if at + 8 > stop:
                raise _Hole("the resources are cut")
            key, value = struct.unpack_from("<II", self._data, at)
            if wanted is None or key == wanted:
                return int(value)
        return None


# ---- the version resource: blocks within blocks, each with a key, a value and children ----


@dataclass(frozen=True, slots=True)
class _Block:
    key: str
    value: bytes
    children: bytes


def _version(data: bytes) -> Version | None:
    root = next(_blocks(data), None)
    if root is None or root.key != "VS_VERSION_INFO":
        return None
    file = product = None
    if (
        len(root.value) >= _FIXED_LENGTH
        and struct.unpack_from("<I", root.value)[0] == _FIXED_SIGNATURE
    ):
        file = _four(root.value, 8)
        product = _four(root.value, 16)
    strings: dict[str, str] = {}
    tables = (
        table
        for info in _blocks(root.children)
        if info.key == "StringFileInfo"
        for table in _blocks(info.children)
    )
    for table in tables:
        for entry in _blocks(table.children, text=True):
            strings.setdefault(entry.key, entry.value.decode("utf-16-le", "replace"))
        break  # the other tables say the same in other languages
    return Version(file, product, strings)


def _four(value: bytes, offset: int) -> tuple[int, int, int, int]:
    high, low = struct.unpack_from("<II", value, offset)
    return high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF


def _blocks(data: bytes, *, text: bool = False) -> Iterator[_Block]:
    """Yield the blocks in *data*, one after the other; *text* values end at their first zero."""
    offset = 0
    while offset + _BLOCK_HEADER <= len(data):
        length, value_length = struct.unpack_from("<HH", data, offset)
        if length < _BLOCK_HEADER:
            return
        block = data[offset : offset + length]
        end = _zero(block, _BLOCK_HEADER)
        key = block[_BLOCK_HEADER:end].decode("utf-16-le", "replace")
        start = _aligned(end + 2)
        if text:
            # The length is meant in characters, but some tools write bytes.
            yield _Block(key, block[start : _zero(block, start)], b"")
        else:
            stop = start + value_length
            yield _Block(key, block[start:stop], block[_aligned(stop) :])
        offset += _aligned(length)


def _zero(data: bytes, start: int) -> int:
    """Return where the UTF-16 text that begins at *start* ends."""
    end = data.find(b"\0\0", start)
    while end >= 0 and (end - start) % 2:
        end = data.find(b"\0\0", end + 1)
    return end if end >= 0 else len(data)


def _aligned(offset: int) -> int:
    return offset + -offset % 4
