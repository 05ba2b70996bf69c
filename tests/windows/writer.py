"""Write small PE files: whole ones, and ones with any part as wrong as a test needs it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MACHINES = {"x64": 0x8664, "x86": 0x14C, "arm64": 0xAA64}
SECTION = 0x1000
HEADERS = 0x400
IMAGE_BASE = 0x180000000
IMAGE_BASE_32 = 0x10000000

Symbols = Sequence[str | int]
"""Names, and ordinals as numbers."""


@dataclass(frozen=True)
class Dll:
    """What to write."""

    machine: str = "x64"
    linker: tuple[int, int] = (14, 42)
    subsystem: int = 2
    subsystem_version: tuple[int, int] = (6, 0)
    characteristics: int = 0x2022
    checksum: int = 0
    imports: Mapping[str, Symbols] = field(default_factory=dict)
    delayed: Mapping[str, Symbols] = field(default_factory=dict)
    delayed_by_address: bool = False
    """Delay imports as old linkers wrote them for x86: addresses in memory."""
    exports: Sequence[str] = ()
    nameless: int = 0
    """How many more functions are exported by ordinal alone."""
    base: int = 1
    forwards: Mapping[str, str] = field(default_factory=dict)
    version: tuple[int, int, int, int] | None = None
    strings: Mapping[str, str] = field(default_factory=dict)
    certificate: bytes = b""
    zeros: int = 0
    """How many bytes the section is longer in memory than in the file."""


class _Section:
    """The one section of the file, filled from its start."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, data: bytes, align: int = 8) -> int:
        """Append *data* and return its address."""
        self.data += b"\0" * (-len(self.data) % align)
        address = SECTION + len(self.data)
        self.data += data
        return address


def write(dll: Dll) -> bytes:
    """Return the file."""
    plus = dll.machine != "x86"
    section = _Section()
    directories = [(0, 0)] * 16
    if dll.exports or dll.nameless or dll.forwards:
        directories[0] = _exports(section, dll)
    if dll.imports:
        directories[1] = _imports(section, dll.imports, plus=plus)
    if dll.version or dll.strings:
        directories[2] = _resources(section, dll)
    if dll.delayed:
        directories[13] = _delayed(section, dll, plus=plus)
    section.put(b"\xcc")  # a section is not empty
    virtual = len(section.data) + dll.zeros
    raw = bytes(section.data) + b"\0" * (-len(section.data) % 0x200)
    if dll.certificate:
        directories[4] = (HEADERS + len(raw), len(dll.certificate))
    return _headers(dll, directories, virtual, len(raw), plus=plus) + raw + dll.certificate


def _headers(
    dll: Dll, directories: list[tuple[int, int]], virtual: int, raw: int, *, plus: bool
) -> bytes:
    dos = b"MZ" + b"\0" * 0x3A + struct.pack("<I", 0x40)
    optional = struct.pack(
        "<HBBIIIII",
        0x20B if plus else 0x10B,
        *dll.linker,
        0,
        raw,
        0,
        0,
        SECTION,
    )
    optional += struct.pack("<Q", IMAGE_BASE) if plus else struct.pack("<II", 0, IMAGE_BASE_32)
    optional += struct.pack("<IIHHHH", 0x1000, 0x200, 6, 0, 0, 0)
    optional += struct.pack("<HH", *dll.subsystem_version)
    size_of_image = SECTION + virtual + -virtual % 0x1000
    optional += struct.pack("<IIII", 0, size_of_image, HEADERS, dll.checksum)
    optional += struct.pack("<HH", dll.subsystem, 0x160)
    optional += struct.pack("<QQQQ" if plus else "<IIII", 0x100000, 0x1000, 0x100000, 0x1000)
    optional += struct.pack("<II", 0, 16)
    optional += b"".join(struct.pack("<II", *directory) for directory in directories)
    file = struct.pack(
        "<4sHHIIIHH",
        b"PE\0\0",
        MACHINES[dll.machine],
        1,
        0x5F000000,
        0,
        0,
        len(optional),
        dll.characteristics,
    )
    row = struct.pack(
        "<8sIIIIIIHHI", b".rdata", virtual, SECTION, raw, HEADERS, 0, 0, 0, 0, 0x40000040
    )
    head = dos + file + optional + row
    return head + b"\0" * (HEADERS - len(head))


def _thunks(section: _Section, symbols: Symbols, *, plus: bool) -> bytes:
    flag = 1 << (63 if plus else 31)
    values = [
        flag | symbol
        if isinstance(symbol, int)
        else section.put(b"\0\0" + symbol.encode("latin-1") + b"\0", 2)
        for symbol in symbols
    ]
    return struct.pack(f"<{len(values) + 1}{'Q' if plus else 'I'}", *values, 0)


def _imports(section: _Section, imports: Mapping[str, Symbols], *, plus: bool) -> tuple[int, int]:
    rows = b""
    for dll, symbols in imports.items():
        thunks = _thunks(section, symbols, plus=plus)
        lookup, bound = section.put(thunks), section.put(thunks)
        rows += struct.pack("<5I", lookup, 0, 0, section.put(dll.encode() + b"\0"), bound)
    rows += b"\0" * 20
    return section.put(rows), len(rows)


def _delayed(section: _Section, dll: Dll, *, plus: bool) -> tuple[int, int]:
    by_address = dll.delayed_by_address and not plus
    base = IMAGE_BASE_32 if by_address else 0
    rows = b""
    for name, symbols in dll.delayed.items():
        thunks = _thunks(section, symbols, plus=plus)
        lookup, bound = section.put(thunks), section.put(thunks)
        handle = section.put(b"\0" * 8)
        row = (section.put(name.encode() + b"\0"), handle, bound, lookup)
        attributes = 0 if by_address else 1
        rows += struct.pack("<8I", attributes, *(base + field for field in row), 0, 0, 0)
    rows += b"\0" * 32
    return section.put(rows), len(rows)


def _exports(section: _Section, dll: Dll) -> tuple[int, int]:
    # A forward is recognised by its address, which lies inside the directory: so all goes there.
    inside = _Section()
    start = section.put(b"", 8)
    at = start - SECTION

    def put(data: bytes, align: int = 4) -> int:
        inside.data += b"\0" * (-len(inside.data) % align)
        inside.data += data
        return SECTION + at + len(inside.data) - len(data)

    put(b"\0" * 40)
    name = put(b"made.dll\0", 1)
    names = sorted([*dll.exports, *dll.forwards])
    targets = [
        put(dll.forwards[n].encode() + b"\0", 1) if n in dll.forwards else 0xFF0 for n in names
    ] + [0xFF0] * dll.nameless
    places = [put(n.encode("latin-1") + b"\0", 1) for n in names]
    functions = put(struct.pack(f"<{len(targets)}I", *targets))
    pointers = put(struct.pack(f"<{len(places)}I", *places))
    indices = put(struct.pack(f"<{len(places)}H", *range(len(places))))
    inside.data[:40] = struct.pack(
        "<IIHHIIIIIII",
        0,
        0,
        0,
        0,
        name,
        dll.base,
        len(targets),
        len(places),
        functions,
        pointers,
        indices,
    )
    section.put(bytes(inside.data), 8)
    return start, len(inside.data)


def _resources(section: _Section, dll: Dll) -> tuple[int, int]:
    block = _version(dll)
    start = section.put(b"", 8)
    tree = b"".join(
        struct.pack("<IIHHHH", 0, 0, 0, 0, 0, 1) + struct.pack("<II", key, value)
        for key, value in ((16, 0x80000018), (1, 0x80000030), (0x409, 72))
    )
    tree += struct.pack("<IIII", start + len(tree) + 16, len(block), 0, 0)
    section.put(tree + block, 8)
    return start, len(tree) + len(block)


def _version(dll: Dll) -> bytes:
    a, b, c, d = dll.version or (0, 0, 0, 0)
    fixed = struct.pack("<13I", 0xFEEF04BD, 0x10000, *(a << 16 | b, c << 16 | d) * 2, *[0] * 7)
    strings = b"".join(
        _padded(_block(key, (value + "\0").encode("utf-16-le"), length=len(value) + 1, kind=1))
        for key, value in dll.strings.items()
    )
    table = _block("040904b0", children=strings, kind=1)
    info = _block("StringFileInfo", children=table, kind=1) if dll.strings else b""
    return _block("VS_VERSION_INFO", fixed if dll.version else b"", children=info)


def _block(
    key: str,
    value: bytes = b"",
    *,
    children: bytes = b"",
    length: int | None = None,
    kind: int = 0,
) -> bytes:
    head = _padded(b"\0" * 6 + (key + "\0").encode("utf-16-le"))
    body = head + (_padded(value) + children if children else value)
    size = len(value) if length is None else length
    return struct.pack("<HHH", len(body), size, kind) + body[6:]


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
