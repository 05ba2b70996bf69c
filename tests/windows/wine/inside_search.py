"""Runs in the Windows CPython under Wine: load DLLs as a list says, and tell which were taken.

The whole of it is piped to ``python -``; the list is a file, the command line being too short.
"""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import ctypes
import json
import os
import sys

kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
for name in ("LoadLibraryExW", "GetModuleHandleW", "AddDllDirectory"):
    getattr(kernel32, name).restype = ctypes.c_void_p
kernel32.LoadLibraryExW.argtypes = [ctypes.c_wchar_p, ctypes.c_void_p, ctypes.c_uint32]
kernel32.GetModuleFileNameW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32]
kernel32.RemoveDllDirectory.argtypes = [ctypes.c_void_p]
kernel32.SetErrorMode(1)


def where(module: str) -> str:
    """Return the path of the loaded *module*; "" when it is not loaded."""
    handle = kernel32.GetModuleHandleW(module)
    buffer = ctypes.create_unicode_buffer(1000)
    if handle:
        kernel32.GetModuleFileNameW(handle, buffer, 1000)
    return buffer.value


def one(trial: dict[str, object]) -> dict[str, object]:
    """Do one load; nothing of it is left but what it loaded."""
    cookies = [kernel32.AddDllDirectory(folder) for folder in trial["registers"]]
    for path in trial["first"]:
        kernel32.LoadLibraryExW(path, None, 0x1100)
    handle = kernel32.LoadLibraryExW(trial["target"], None, trial["flags"])
    error = 0 if handle else ctypes.get_last_error()
    for cookie in cookies:
        kernel32.RemoveDllDirectory(cookie)
    return {"error": error, "taken": {module: where(module) for module in trial["modules"]}}


def main() -> None:
    options = json.loads(sys.argv[1])
    os.chdir(options["working"])
    with open(options["trials"], encoding="ascii") as file:  # noqa: PTH123 - a Windows path
        trials = json.load(file)
    line = json.dumps({"results": [one(trial) for trial in trials], "done": True})
    os.write(1, (line + "\n").encode("ascii"))


main()
