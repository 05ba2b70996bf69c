"""pefile with its caps lifted: what it says of a file, in our reader's words."""

from __future__ import annotations

from typing import Any

import pefile  # type: ignore[import-untyped]

from windows.pe import MACHINES, Import, Pe, Version

_MANY = 10**9

# Silent limits that make torch_cpu.dll and torch_python.dll come out short.
pefile.MAX_IMPORT_SYMBOLS = pefile.MAX_SYMBOL_EXPORT_COUNT = _MANY
pefile.MAX_SYMBOL_NAME_LENGTH = pefile.MAX_IMPORT_NAME_LENGTH = 1 << 16
# It puts names where ws2_32 and oleaut32 are imported by ordinal.
pefile.ordlookup.ordLookup = lambda *_, **__: None


def read(path: str | None = None, data: bytes | None = None) -> Pe:
    """Return what pefile says of the file."""
    file = pefile.PE(
        path, data=data, fast_load=True, max_symbol_exports=_MANY, max_repeated_symbol=_MANY
    )
    try:
        file.parse_data_directories([0, 1, 2, 13])
        return _told(file)
    finally:
        file.close()


def _told(file: Any) -> Pe:
    head = file.OPTIONAL_HEADER
    places = [(d.VirtualAddress, d.Size) for d in head.DATA_DIRECTORY]
    certificate, length = places[4]
    symbols = getattr(getattr(file, "DIRECTORY_ENTRY_EXPORT", None), "symbols", [])
    ends = [s.PointerToRawData + s.SizeOfRawData for s in file.sections if s.SizeOfRawData]
    return Pe(
        machine=MACHINES.get(file.FILE_HEADER.Machine, hex(file.FILE_HEADER.Machine)),
        linker=(head.MajorLinkerVersion, head.MinorLinkerVersion),
        subsystem=head.Subsystem,
        subsystem_version=(head.MajorSubsystemVersion, head.MinorSubsystemVersion),
        is_dll=bool(file.FILE_HEADER.Characteristics & 0x2000),
        timestamp=file.FILE_HEADER.TimeDateStamp,
        checksum=head.CheckSum,
        size_of_image=head.SizeOfImage,
        size=len(file.__data__),
        sections_end=max(ends, default=0),
        certificate_end=certificate + length if length else 0,
        signed=length > 0,
        imports=_imports(getattr(file, "DIRECTORY_ENTRY_IMPORT", [])),
        delayed=_imports(getattr(file, "DIRECTORY_ENTRY_DELAY_IMPORT", [])),
        exports=frozenset(s.name.decode("latin-1") for s in symbols if s.name),
        ordinals=frozenset(s.ordinal for s in symbols),
        forwards={
            s.name.decode("latin-1"): s.forwarder.decode("latin-1")
            for s in symbols
            if s.forwarder and s.name
        },
        version=_version(file),
    )


def _imports(entries: Any) -> tuple[Import, ...]:
    return tuple(
        Import(
            entry.dll.decode("latin-1"),
            tuple(i.name.decode("latin-1") for i in entry.imports if i.name is not None),
            tuple(i.ordinal for i in entry.imports if i.name is None),
        )
        for entry in entries
    )


def _version(file: Any) -> Version | None:
    fixed = getattr(file, "VS_FIXEDFILEINFO", None)
    if not fixed:
        return None
    tables = [
        table
        for block in (getattr(file, "FileInfo", None) or [[]])[0]
        for table in getattr(block, "StringTable", [])
    ]
    strings = {k.decode(): v.decode() for k, v in tables[0].entries.items()} if tables else {}
    return Version(
        file=_four(fixed[0].FileVersionMS, fixed[0].FileVersionLS),
        product=_four(fixed[0].ProductVersionMS, fixed[0].ProductVersionLS),
        strings=strings,
    )


def _four(high: int, low: int) -> tuple[int, int, int, int]:
    return high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF
