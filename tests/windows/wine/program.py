"""Write a python.exe: a program of 40 bytes of code that calls Py_Main of python311.dll.

No wheel carries python.exe, and this way no compiler for Windows is needed.
"""

from __future__ import annotations

import struct

_BASE, _SECTION, _HEADERS = 0x140000000, 0x1000, 0x200
_IMPORTS = (
    ("KERNEL32.dll", ("GetCommandLineW", "ExitProcess")),
    ("SHELL32.dll", ("CommandLineToArgvW",)),
)


def python_exe(interpreter: str) -> bytes:
    """Return a console program for x64 that hands its command line to *interpreter*'s Py_Main."""
    imports = (*_IMPORTS, (interpreter, ("Py_Main",)))
    data, places, directory = _imports(imports, _SECTION)
    start = _SECTION + len(data)
    data += _code(start, places)
    data += b"\0" * (-len(data) % 0x200)
    return _headers(start, directory, len(data)) + data


def _imports(
    imports: tuple[tuple[str, tuple[str, ...]], ...], at: int
) -> tuple[bytes, dict[str, int], tuple[int, int]]:
    """Return the import section, where each function's address will be, and the directory."""
    data = bytearray()

    def put(piece: bytes) -> int:
        data.extend(b"\0" * (-len(data) % 8))
        data.extend(piece)
        return at + len(data) - len(piece)

    places: dict[str, int] = {}
    rows = b""
    for dll, names in imports:
        hints = [put(b"\0\0" + name.encode() + b"\0") for name in names]
        thunks = struct.pack(f"<{len(hints) + 1}Q", *hints, 0)
        lookup, bound = put(thunks), put(thunks)
        places |= {name: bound + 8 * number for number, name in enumerate(names)}
        rows += struct.pack("<5I", lookup, 0, 0, put(dll.encode() + b"\0"), bound)
    rows += b"\0" * 20
    start = put(rows)
    data.extend(b"\0" * (-len(data) % 16))
    return bytes(data), places, (start, len(rows))


def _code(start: int, places: dict[str, int]) -> bytes:
    code = bytearray(b"\x48\x83\xec\x38")  # sub rsp, 0x38: shadow space, and argc at rsp+0x28

    def call(name: str) -> None:
        code.extend(b"\xff\x15" + struct.pack("<i", places[name] - (start + len(code) + 6)))

    call("GetCommandLineW")
    code += b"\x48\x89\xc1\x48\x8d\x54\x24\x28"  # mov rcx, rax; lea rdx, [rsp+0x28]
    call("CommandLineToArgvW")
    code += b"\x48\x89\xc2\x8b\x4c\x24\x28"  # mov rdx, rax; mov ecx, [rsp+0x28]
    call("Py_Main")
    code += b"\x89\xc1"  # mov ecx, eax
    call("ExitProcess")
    return bytes(code) + b"\xcc"


def _headers(start: int, imports: tuple[int, int], size: int) -> bytes:
    directories = [(0, 0)] * 16
    directories[1] = imports
    image = _SECTION + size + -size % 0x1000
    optional = struct.pack("<HBBIIIII", 0x20B, 14, 0, size, 0, 0, start, _SECTION)
    optional += struct.pack("<QIIHHHHHHI", _BASE, 0x1000, 0x200, 6, 0, 0, 0, 6, 0, 0)
    optional += struct.pack("<IIIHH", image, _HEADERS, 0, 3, 0x8100)  # a console program
    optional += struct.pack("<QQQQII", 0x200000, 0x1000, 0x100000, 0x1000, 0, 16)
    optional += b"".join(struct.pack("<II", *directory) for directory in directories)
    head = b"MZ" + b"\0" * 0x3A + struct.pack("<I", 0x40)
    head += struct.pack("<4sHHIIIHH", b"PE\0\0", 0x8664, 1, 0, 0, 0, len(optional), 0x23)
    head += optional
    head += struct.pack(
        "<8sIIIIIIHHI", b".text", size, _SECTION, size, _HEADERS, 0, 0, 0, 0, 0xE0000060
    )
    return head + b"\0" * (_HEADERS - len(head))
