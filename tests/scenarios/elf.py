"""The smallest shared objects that the system's loader takes: a name, needs, where to look.

They hold no code. With them the loader itself answers what is missing, as it does for the real
libraries of several gigabytes.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable

MACHINES = {"x86_64": 62, "aarch64": 183}

_NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME, _RPATH = 1, 4, 5, 6, 10, 11, 14, 15
_RUNPATH = 29
_HEAD = 64 + 3 * 56


def shared_object(
    soname: str, needed: Iterable[str] = (), rpath: str = "", *, run: bool = False
) -> bytes:
    """Return a 64-bit little-endian ELF library called *soname* that needs *needed*.

    *rpath* is written as DT_RPATH, which wins over LD_LIBRARY_PATH, or with *run* as DT_RUNPATH,
    which does not.
    """
    strings = bytearray(b"\0")

    def text(value: str) -> int:
        start = len(strings)
        strings.extend(value.encode() + b"\0")
        return start

    entries = [(_NEEDED, text(name)) for name in needed]
    entries.append((_SONAME, text(soname)))
    if rpath:
        entries.append((_RUNPATH if run else _RPATH, text(rpath)))
    symbols = _HEAD
    table = symbols + 24
    names = table + 16
    dynamic = (names + len(strings) + 7) // 8 * 8
    entries += [
        (_HASH, table),
        (_STRTAB, names),
        (_SYMTAB, symbols),
        (_STRSZ, len(strings)),
        (_SYMENT, 24),
        (0, 0),
    ]
    end = dynamic + 16 * len(entries)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack(
        "<HHIQQQIHHHHHH", 3, MACHINES[platform.machine()], 1, 0, 64, 0, 0, 64, 56, 3, 64, 0, 0
    )
    body = header
    body += _segment(1, 0, end, 0x10000)  # PT_LOAD: all of it
    body += _segment(2, dynamic, end - dynamic, 8)  # PT_DYNAMIC
    body += _segment(0x6474E551, 0, 0, 16)  # PT_GNU_STACK: none that runs
    body += bytes(24)  # the one symbol there has to be
    body += struct.pack("<IIII", 1, 1, 0, 0)  # a hash table of one empty bucket
    body = (body + bytes(strings)).ljust(dynamic, b"\0")
    return body + b"".join(struct.pack("<QQ", *entry) for entry in entries)


def _segment(kind: int, start: int, size: int, align: int) -> bytes:
    read_write = 6
    return struct.pack("<IIQQQQQQ", kind, read_write, start, start, start, size, size, align)
