"""The cache of the dynamic loader, /etc/ld.so.cache: which file the system has for a soname.

Source: glibc, sysdeps/generic/dl-cache.h (the format "glibc-ld.so.cache" 1.1, and its extension
with names of folders below glibc-hwcaps) and elf/dl-cache.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MAGIC = b"glibc-ld.so.cache1.1"
OLD_MAGIC = b"ld.so-1.7.0\0"
_HEADER, _ENTRY, _OLD_ENTRY, _OLD_HEADER = 48, 24, 12, 16
_EXTENSION_MAGIC = 0xEAA42174
_NAMES_OF_FOLDERS = 1
_HAS_FOLDER = 1 << 62
_ALIGNMENT = 8
_LONGEST = 4096
_KINDS: Mapping[str, int] = {
    "x86_64": 0x0303,
    "aarch64": 0x0A03,
    "i386": 0x0003,
    "ppc64": 0x0503,
    "s390": 0x0403,
}


class NotCache(Exception):  # noqa: N818 - it says what the file is not
    """The file is not a cache of the loader, or is damaged."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the cache; *folder* is the one below glibc-hwcaps that it is for."""

    name: str
    path: str
    kind: int
    folder: str | None = None
    capabilities: int = 0
    """Capabilities in the way of glibc before 2.37; 0 = for every processor."""


def parse(data: bytes) -> tuple[Entry, ...]:
    """Return the entries of the cache with the content *data*; raises NotCache."""
    start = data.find(MAGIC, 0, 1 << 24) if data.startswith(OLD_MAGIC) else 0
    if start < 0 or data[start : start + len(MAGIC)] != MAGIC:
        raise NotCache("it does not start as a cache of the loader does")
    try:
        return tuple(_entries(data, start))
    except struct.error as error:
        raise NotCache(f"it is cut: {error}") from None


def _entries(data: bytes, start: int) -> Iterator[Entry]:
    (count,) = struct.unpack_from("<I", data, start + len(MAGIC))
    (extension,) = struct.unpack_from("<I", data, start + 32)
    folders = _folders(data, start, extension) if extension else []
    for index in range(min(count, len(data) // _ENTRY)):
        kind, key, value, _, capabilities = struct.unpack_from(
            "<iIIIQ", data, start + _HEADER + _ENTRY * index
        )
        folder = None
        if capabilities & _HAS_FOLDER:
            number = capabilities & 0xFFFFFFFF
            if number >= len(folders):
                raise NotCache("an entry is for a folder that has no name")
            folder, capabilities = folders[number], 0
        yield Entry(
            _text(data, start + key), _text(data, start + value), kind, folder, capabilities
        )


def _folders(data: bytes, start: int, extension: int) -> list[str]:
    """Return the names of folders below glibc-hwcaps."""
    at = start + (extension if not extension % 4 else 0)
    magic, count = struct.unpack_from("<II", data, at)
    if magic != _EXTENSION_MAGIC:
        return []
    for index in range(min(count, len(data) // 16)):
        tag, _, place, length = struct.unpack_from("<IIII", data, at + 8 + 16 * index)
        if tag == _NAMES_OF_FOLDERS:
            number = min(length, len(data)) // 4
            places = struct.unpack_from(f"<{number}I", data, start + place)
            return [_text(data, start + p) for p in places]
    return []


def _text(data: bytes, place: int) -> str:
    end = data.find(b"\0", place, place + _LONGEST)
    if end < 0:
        raise NotCache(f"the text at {place} has no end")
    return data[place:end].decode("utf-8", "surrogateescape")


def table(entries: Sequence[Entry], machine: str, folders: Sequence[str] = ()) -> dict[str, str]:
    """Return the file that the loader takes for each soname.

    *folders* are those below glibc-hwcaps that this processor may use, the best first.
    """
    kind = _KINDS.get(machine)
    best: dict[str, tuple[int, str]] = {}
    for entry in entries:
        # An entry for capabilities of old is not taken: which the processor has is not known here.
        if (kind is not None and entry.kind != kind) or entry.capabilities:
            continue
        if entry.folder is None:
            rank = len(folders)
        elif entry.folder in folders:
            rank = folders.index(entry.folder)
        else:
            continue
        if entry.name not in best or rank < best[entry.name][0]:
            best[entry.name] = rank, entry.path
    return {name: path for name, (_, path) in best.items()}
