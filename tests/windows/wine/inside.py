"""Runs in the Windows CPython under Wine: import torch as the options say, and tell what came.

The whole of it is piped to ``python -``. With "whole" torch is imported whole and computes; else
the import stops once torch._C is loaded and set up, which is all that the loader has to do with.
"""

# Ends with the process: whatever fails is told, and imports are what is tried.
# ruff: noqa: BLE001, PERF203, PLC0415
# mypy: disable-error-code="attr-defined,import-not-found"

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from types import ModuleType

_OUT = os.dup(1)


def say(**fields: object) -> None:
    """Tell *fields* to whoever started this."""
    os.write(_OUT, (json.dumps(fields) + "\n").encode("ascii"))


class Enough(BaseException):
    """torch._C is there."""


class Loader(ExtensionFileLoader):
    """Loads an extension, then stops the import of whatever wanted it."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        raise Enough


class Finder:
    """Finds torch._C."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "torch._C" else None
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def what(error: BaseException) -> dict[str, object]:
    """Return *error* as an object for JSON."""
    return {
        "type": type(error).__name__,
        "winerror": getattr(error, "winerror", None),
        "text": str(error)[:600],
        "path": getattr(error, "path", None),
    }


def where(name: str) -> str:
    """Return the path of the loaded module *name*; "" when it is not loaded."""
    kernel32 = ctypes.WinDLL("kernel32")
    kernel32.GetModuleHandleW.restype = ctypes.c_void_p
    kernel32.GetModuleHandleW.argtypes = [ctypes.c_wchar_p]
    kernel32.GetModuleFileNameW.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_ulong]
    handle = kernel32.GetModuleHandleW(name)
    buffer = ctypes.create_unicode_buffer(1000)
    if handle:
        kernel32.GetModuleFileNameW(handle, buffer, 1000)
    return buffer.value


def take(step: dict[str, str]) -> None:
    """Do one step of what comes before torch."""
    if "register" in step:
        os.add_dll_directory(step["register"])
    if "load" in step:
        ctypes.WinDLL(step["load"])
    if "import" in step:
        importlib.import_module(step["import"])


def import_torch(*, whole: bool) -> str:
    """Import torch; return its version, or the word that the extension is there."""
    if whole:
        import torch

        numbers = torch.arange(9.0).reshape(3, 3)
        return f"{torch.__version__} computes {(numbers @ numbers).sum().item():g}"
    sys.meta_path.insert(0, Finder)
    try:
        import torch
    except Enough:
        return "torch._C"
    return "torch without torch._C"


def main() -> None:
    options = json.loads(sys.argv[1])
    say(started=True)
    sys.path = [entry for entry in sys.path if entry]
    for step in options.get("before", ()):
        try:
            take(step)
        except BaseException as error:
            say(before=what(error), done=True)
            return
    try:
        say(torch=import_torch(whole=options.get("whole", False)))
        for path in options.get("after", ()):
            say(trying=path)
            ctypes.CDLL(path)  # as torch.ops.load_library does
    except BaseException as error:
        say(error=what(error))
    say(msvcp=where("msvcp140.dll"), openmp=where("libiomp5md.dll"), done=True)


main()
sys.stdout.flush()
os._exit(0)
