"""Spoil PE files in the ways that a bad disk, a cut download and an attacker do."""

from __future__ import annotations

import random
import struct

from tests.windows.writer import HEADERS, SECTION, Dll, write

_STRINGS = {"ProductName": "A product", "FileDescription": "What it does", "Comments": "ünï"}

SEEDS = tuple(
    write(dll)
    for dll in (
        Dll(
            imports={"msvcp140.dll": ["_Mtx_lock", "_Mtx_unlock"], "libiomp5md.dll": [3, 7, "omp"]},
            delayed={"cudart64_12.dll": ["cudaMalloc", 9]},
            exports=["alpha", "beta", "?gamma@@YAXXZ"],
            nameless=3,
            forwards={"delta": "NTDLL.RtlDelta"},
            version=(14, 44, 35211, 0),
            strings=_STRINGS,
            certificate=b"signed" * 8,
        ),
        Dll(
            machine="x86",
            imports={"kernel32.dll": ["Sleep"], "ws2_32.dll": [1, 2]},
            delayed={"user32.dll": ["MessageBoxW"]},
            delayed_by_address=True,
            exports=["only"],
            base=100,
            version=(1, 2, 3, 4),
            zeros=0x3000,
        ),
        Dll(machine="arm64", exports=[f"name{i:03}" for i in range(200)]),
        Dll(imports={f"dll{i}.dll": [f"f{j}" for j in range(20)] for i in range(10)}),
    )
)


def spoiled(rng: random.Random) -> bytes:
    """Return one of SEEDS with up to a dozen things wrong in it."""
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randint(1, 12)):
        rng.choice(_WAYS)(data, rng)
        if not data:
            break
    return bytes(data)


def _flip(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def _flip_head(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(min(len(data), HEADERS))] = rng.randrange(256)


def _number(data: bytearray, rng: random.Random) -> None:
    """Put a number where one may be: huge, none, an address in the file, the place itself."""
    place = rng.randrange(max(1, len(data) - 4)) & ~3
    value = rng.choice(
        (
            0,
            1,
            0x7FFFFFFF,
            0x80000000,
            0xFFFFFFFF,
            len(data),
            SECTION,
            SECTION + rng.randrange(len(data)),
            SECTION + place - HEADERS,
            0x80000000 | rng.randrange(64),
        )
    )
    data[place : place + 4] = struct.pack("<I", value & 0xFFFFFFFF)


def _directory(data: bytearray, rng: random.Random) -> None:
    """Point a directory somewhere else in the file."""
    place = 0x40 + 24 + rng.choice((96, 112)) + 8 * rng.choice((0, 1, 2, 4, 13))
    if place + 8 < len(data):
        value = SECTION + rng.randrange(len(data)), rng.choice((0, 8, 0x1000, 0xFFFFFFFF))
        data[place : place + 8] = struct.pack("<II", *value)


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _move(data: bytearray, rng: random.Random) -> None:
    start, length = rng.randrange(len(data)), rng.randrange(1, 64)
    to = rng.randrange(len(data))
    piece = data[start : start + length]
    data[to : to + len(piece)] = piece


def _grow(data: bytearray, rng: random.Random) -> None:
    data += rng.choice((b"\0", b"A", b"\xff")) * rng.randrange(1, 4096)


_WAYS = (_flip, _flip, _flip_head, _number, _number, _directory, _cut, _move, _grow)
