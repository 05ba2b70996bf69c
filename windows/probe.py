"""Look at what only Windows has, from the interpreter that runs this.

Its source is piped to the interpreter under test, with one argument, a JSON object:

``after``  modules to import first, as the user's program does; torch is not imported
``trace``  nothing but this: import torch, no further than its compiled part, and tell which DLLs
           that loads, in their order

One JSON object a line; the last one has ``done``. What fails is told under ``errors``, by the name
of what was looked at. Only facts are told, as the system gives them; nothing is written.
"""

from __future__ import annotations

import os
import sys

if sys.path and sys.path[0] == "":
    del sys.path[0]

CHANNEL = os.dup(1)
os.dup2(2, 1)

import ctypes  # noqa: E402
import json  # noqa: E402
from ctypes import wintypes  # noqa: E402

MACHINE = "HKEY_LOCAL_MACHINE"
RUNTIMES = r"SOFTWARE\Microsoft\VisualStudio\14.0\VC\Runtimes"
RUNTIMES_32 = r"SOFTWARE\Wow6432Node\Microsoft\VisualStudio\14.0\VC\Runtimes"
CONTROL = r"SYSTEM\CurrentControlSet\Control"
MOST = 4096
LONGEST_PATH = 32768
CODE_INTEGRITY = 103
"""SystemCodeIntegrityInformation, of NtQuerySystemInformation."""
LOADED = 1
"""LDR_DLL_NOTIFICATION_REASON_LOADED; the other one is 2, for unloaded."""

errors = {}  # type: dict[str, str]
registered = []  # type: list[str]
noticed = []  # type: list[list[object]]
kept = []  # type: list[object]
"""What must live as long as the process: Windows calls it."""


def say(**what: object) -> None:
    """Write one line of the answer."""
    line = (json.dumps(what) + "\n").encode("ascii", "backslashreplace")
    while line:
        line = line[os.write(CHANNEL, line) :]


def tell(name: str, look, *arguments) -> object:  # type: ignore[no-untyped-def] # noqa: ANN001, ANN002
    """Say under *name* what *look* returns, and return it; a failure is told, and gives None."""
    try:
        said = look(*arguments)
    except BaseException as failure:
        errors[name] = "%s: %s" % (type(failure).__name__, str(failure)[:400])
        return None
    say(**{name: said})
    return said


def library(name: str) -> object:
    """Return a DLL of Windows, by its path in System32: no other folder is searched."""
    root = os.environ.get("SystemRoot", "C:\\Windows")
    return ctypes.WinDLL(  # type: ignore[attr-defined,unused-ignore]
        os.path.join(root, "System32", name), use_last_error=True
    )


def function(dll: object, name: str, result: object, *arguments: object):  # type: ignore[no-untyped-def] # noqa: ANN201
    """Return a function of *dll*, with its types."""
    call = getattr(dll, name)
    call.restype = result
    call.argtypes = list(arguments)
    return call


# ---- the registry ------------------------------------------------------------------------------


def values(key: str, view: int = 0) -> dict[str, object]:
    """Return all values of *key* below HKEY_LOCAL_MACHINE; empty when there is no such key."""
    import winreg

    reg = winreg  # type: object
    seen = {}  # type: dict[str, object]
    access = reg.KEY_READ | view  # type: ignore[attr-defined]
    try:
        opened = reg.OpenKey(reg.HKEY_LOCAL_MACHINE, key, 0, access)  # type: ignore[attr-defined]
    except FileNotFoundError:
        return seen
    with opened:
        for index in range(MOST):
            try:
                name, value, _ = reg.EnumValue(opened, index)  # type: ignore[attr-defined]
            except OSError:
                break
            seen[name] = value if isinstance(value, int) else str(value)
    return seen


def runtimes() -> dict[str, object]:
    """Return the VC++ runtimes as both views of the registry have them."""
    seen = {}  # type: dict[str, object]
    for view, flag in (("64", 0x100), ("32", 0x200)):
        for key in (RUNTIMES, RUNTIMES_32) if view == "64" else (RUNTIMES,):
            for processor in ("x64", "x86", "arm64"):
                found = values(key + "\\" + processor, flag)
                if found:
                    place = view if key == RUNTIMES else "Wow6432Node"
                    seen[place + " " + processor] = {
                        name: found.get(name)
                        for name in ("Version", "Installed", "Major", "Minor", "Bld", "Rbld")
                    }
    return seen


def system() -> dict[str, object]:
    """Return edition and build of Windows, as the registry and the kernel have them."""
    seen = values(r"SOFTWARE\Microsoft\Windows NT\CurrentVersion")
    names = (
        "EditionID",
        "InstallationType",
        "ProductName",
        "DisplayVersion",
        "CurrentBuild",
        "UBR",
    )
    told = {name: seen.get(name) for name in names}  # type: dict[str, object]

    class Version(ctypes.Structure):
        _fields_ = [
            ("size", wintypes.DWORD),
            ("major", wintypes.DWORD),
            ("minor", wintypes.DWORD),
            ("build", wintypes.DWORD),
            ("platform", wintypes.DWORD),
            ("pack", wintypes.WCHAR * 128),
        ]

    version = Version()
    version.size = ctypes.sizeof(version)
    call = function(library("ntdll.dll"), "RtlGetVersion", ctypes.c_long, ctypes.c_void_p)
    if call(ctypes.byref(version)) == 0:
        told["version"] = [version.major, version.minor, version.build]
    kernel = library("kernel32.dll")
    told["code_page"] = function(kernel, "GetACP", wintypes.UINT)()
    told["language"] = function(kernel, "GetUserDefaultUILanguage", ctypes.c_ushort)()
    return told


def switches() -> dict[str, object]:
    """Return the switches for long paths and for the search of DLLs."""
    files = values(CONTROL + r"\FileSystem")
    manager = values(CONTROL + r"\Session Manager")
    return {
        "LongPathsEnabled": files.get("LongPathsEnabled"),
        "SafeDllSearchMode": manager.get("SafeDllSearchMode"),
    }


def known_dlls() -> list[str]:
    """Return the DLLs that always come from System32."""
    names = values(CONTROL + r"\Session Manager\KnownDLLs").values()
    return sorted({str(n).lower() for n in names if str(n).lower().endswith(".dll")})


def policy() -> dict[str, object]:
    """Return what may forbid unsigned code: Smart App Control, and code integrity."""
    told = {}  # type: dict[str, object]
    told.update(
        {
            name: value
            for name, value in values(CONTROL + r"\CI\Policy").items()
            if name in ("VerifiedAndReputablePolicyState", "EmodePolicyRequired")
        }
    )

    class Integrity(ctypes.Structure):
        _fields_ = [("length", wintypes.ULONG), ("options", wintypes.ULONG)]

    state = Integrity(ctypes.sizeof(Integrity), 0)
    call = function(
        library("ntdll.dll"),
        "NtQuerySystemInformation",
        ctypes.c_long,
        *(ctypes.c_int, ctypes.c_void_p, wintypes.ULONG, ctypes.c_void_p),
    )
    if call(CODE_INTEGRITY, ctypes.byref(state), ctypes.sizeof(state), None) == 0:
        told["code_integrity"] = state.options
    return told


# ---- memory and modules ------------------------------------------------------------------------


def memory() -> dict[str, int]:
    """Return what may be committed, in bytes; GlobalMemoryStatusEx calls it the page file."""

    class Status(ctypes.Structure):
        _fields_ = [
            ("length", wintypes.DWORD),
            ("load", wintypes.DWORD),
            ("physical", ctypes.c_ulonglong),
            ("physical_free", ctypes.c_ulonglong),
            ("commit_limit", ctypes.c_ulonglong),
            ("commit_available", ctypes.c_ulonglong),
            ("virtual", ctypes.c_ulonglong),
            ("virtual_free", ctypes.c_ulonglong),
            ("extended", ctypes.c_ulonglong),
        ]

    status = Status()
    status.length = ctypes.sizeof(status)
    call = function(library("kernel32.dll"), "GlobalMemoryStatusEx", wintypes.BOOL, ctypes.c_void_p)
    if not call(ctypes.byref(status)):
        raise OSError(ctypes.get_last_error(), "GlobalMemoryStatusEx")  # type: ignore[attr-defined,unused-ignore]
    names = ("physical", "physical_free", "commit_limit", "commit_available")
    return {name: getattr(status, name) for name in names}


def module_path(handle: object) -> str:
    """Return the path of a loaded module."""
    call = function(
        library("kernel32.dll"),
        "GetModuleFileNameW",
        wintypes.DWORD,
        *(wintypes.HMODULE, wintypes.LPWSTR, wintypes.DWORD),
    )
    text = ctypes.create_unicode_buffer(LONGEST_PATH)
    return text.value if call(handle, text, LONGEST_PATH) else ""


def modules() -> list[str]:
    """Return the paths of all modules that are loaded, in the order of loading."""
    kernel = library("kernel32.dll")
    this = function(kernel, "GetCurrentProcess", wintypes.HANDLE)
    call = function(
        kernel,
        "K32EnumProcessModules",
        wintypes.BOOL,
        *(wintypes.HANDLE, ctypes.c_void_p, wintypes.DWORD, ctypes.c_void_p),
    )
    handles = (wintypes.HMODULE * MOST)()
    needed = wintypes.DWORD()
    if not call(this(), handles, ctypes.sizeof(handles), ctypes.byref(needed)):
        raise OSError(ctypes.get_last_error(), "K32EnumProcessModules")  # type: ignore[attr-defined,unused-ignore]
    count = min(MOST, needed.value // ctypes.sizeof(wintypes.HMODULE))
    return [module_path(handles[i]) for i in range(count)]


def interpreter() -> dict[str, object]:
    """Return the folders that torch's start asks for, and the DLL that is Python."""
    import site
    import sysconfig

    handle = getattr(sys, "dllhandle", None)
    include = sysconfig.get_path("include") or ""
    base = sys.base_exec_prefix
    return {
        "executable": sys.executable,
        "base_executable": getattr(sys, "_base_executable", None),
        "exec_prefix": sys.exec_prefix,
        "base_exec_prefix": base,
        "python_dll": module_path(handle) if handle else None,
        "bits": 64 if sys.maxsize > 1 << 32 else 32,
        "userbase": site.getuserbase(),  # torch looks there also when it is switched off
        "frozen": bool(getattr(sys, "frozen", False)),
        "include": os.path.isfile(os.path.join(include, "Python.h")),
        "libs": os.path.isdir(os.path.join(base, "libs")),
        "path": os.environ.get("PATH", "").split(os.pathsep)[:MOST],
        "system_root": os.environ.get("SystemRoot"),
        "nvtools": os.environ.get("NVTOOLSEXT_PATH"),
        "program_files": os.environ.get("ProgramFiles"),
        "cuda_paths": {n: v for n, v in os.environ.items() if n.startswith("CUDA_PATH")},
        "conda_prefix": os.environ.get("CONDA_PREFIX"),
        "sites": [p for p in sys.path if os.path.basename(p).lower() == "site-packages"],
    }


def packages() -> dict[str, object]:
    """Return the folders of torch and its companions; nothing of them is imported."""
    from importlib.machinery import PathFinder

    told = {}  # type: dict[str, object]
    for name in ("torch", "torchvision", "torchaudio"):
        spec = PathFinder.find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
        told[name] = str(places[0]) if places else None
    if told["torch"]:
        with open(os.path.join(str(told["torch"]), "version.py"), "rb") as file:
            told["version"] = file.read(4096).decode("utf-8", "replace")
    return told


# ---- the user's own imports --------------------------------------------------------------------


def watch() -> None:
    """Keep the folders that anybody registers from here on."""
    register = os.add_dll_directory  # type: ignore[attr-defined,unused-ignore]

    def kept(path: str) -> object:
        result = register(path)
        registered.append(str(path))
        return result

    os.add_dll_directory = kept  # type: ignore[attr-defined,unused-ignore]


def imports(names: list[str]) -> dict[str, object]:
    """Import *names*, one after the other; return how each went."""
    told = {}  # type: dict[str, object]
    for name in names:
        say(stage="after " + name)
        try:
            __import__(name)
            told[name] = None
        except BaseException as failure:
            told[name] = "%s: %s" % (type(failure).__name__, str(failure)[:400])
    return told


# ---- what torch loads --------------------------------------------------------------------------


def notice() -> bool:
    """Have Windows tell of every DLL that is loaded or unloaded from here on."""

    class Name(ctypes.Structure):
        _fields_ = [
            ("length", wintypes.USHORT),
            ("room", wintypes.USHORT),
            ("text", ctypes.c_void_p),
        ]

    class Notice(ctypes.Structure):
        _fields_ = [
            ("flags", wintypes.ULONG),
            ("full", ctypes.POINTER(Name)),
            ("base", ctypes.POINTER(Name)),
            ("address", ctypes.c_void_p),
            ("size", wintypes.ULONG),
        ]

    kind = ctypes.WINFUNCTYPE(  # type: ignore[attr-defined,unused-ignore]
        None, wintypes.ULONG, ctypes.POINTER(Notice), ctypes.c_void_p
    )

    def told(reason: int, notice: object, _: object) -> None:
        # Windows holds its lock meanwhile: nothing may be loaded here, and nothing raised.
        name = notice[0].full[0]  # type: ignore[index]
        if len(noticed) < MOST and name.text:
            path = ctypes.wstring_at(name.text, name.length // 2)
            noticed.append(["loaded" if reason == LOADED else "unloaded", path])

    callback = kind(told)
    cookie = ctypes.c_void_p()
    call = function(
        library("ntdll.dll"),
        "LdrRegisterDllNotification",
        ctypes.c_long,
        *(wintypes.ULONG, kind, ctypes.c_void_p, ctypes.c_void_p),
    )
    status = call(0, callback, None, ctypes.byref(cookie))
    if status:
        raise OSError(status, "LdrRegisterDllNotification")
    kept.extend((callback, cookie))
    return True


class Enough(BaseException):
    """The compiled part of torch is loaded."""


def stop_at_extension() -> None:
    """Have the import of torch end once torch._C is loaded: the rest loads no DLLs of its own."""
    from importlib.machinery import ExtensionFileLoader, PathFinder

    class Loader(ExtensionFileLoader):
        def exec_module(self, module: object) -> None:  # noqa: ARG002 - as it is called
            raise Enough

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> object:
            if name != "torch._C":
                return None
            spec = PathFinder.find_spec(name, path, target)  # type: ignore[arg-type]
            if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
                spec.loader = Loader(spec.loader.name, spec.loader.path)
            return spec

    sys.meta_path.insert(0, Finder)  # type: ignore[arg-type]


def trace() -> dict[str, object]:
    """Import torch up to its compiled part; return how that went, and what was loaded."""
    stop_at_extension()
    ended = None
    say(stage="trace")
    try:
        __import__("torch")
    except Enough:
        pass
    except BaseException as failure:
        ended = "%s: %s" % (type(failure).__name__, str(failure)[:400])
    return {"ended": ended, "notices": noticed}


def main() -> None:
    """Look at one thing after the other and say each at once."""
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    after = [str(name) for name in options.get("after", [])]
    if options.get("trace"):
        tell("notice", notice)
        tell("trace", trace)
        say(errors=errors, done=True)
        return
    tell("interpreter", interpreter)
    tell("packages", packages)
    tell("before", modules)
    if after:
        tell("watch", watch)
        tell("imports", imports, after)
        say(after=after, registered=registered)
        tell("modules", modules)
    else:
        for look in (system, runtimes, switches, known_dlls, policy, memory):
            tell(look.__name__, look)
    say(errors=errors, done=True)


main()
os._exit(0)  # what the imports have registered for the end must not hang
