"""A Windows installation in a folder, made of small synthetic DLLs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.windows.writer import Dll, write

Version = tuple[int, int, int, int]
OLD: Version = (14, 29, 30133, 0)
NEW: Version = (14, 44, 35112, 0)
PYTHON: Version = (3, 11, 9150, 1013)
MUTEX = ("_Mtx_lock", "_Mtx_unlock")
SITE = "Python311/Lib/site-packages"


def runtime(version: Version) -> dict[str, bytes]:
    """Return the VC++ runtime *version*."""
    names = ("msvcp140.dll", "vcruntime140.dll", "vcruntime140_1.dll")
    file = Dll(version=version, exports=("memcpy", *MUTEX))
    return {name: write(file) for name in names}


def torch() -> dict[str, bytes]:
    """Return torch's DLLs, three of them, built as torch 2.9 is."""
    c10 = Dll(imports={"MSVCP140.dll": MUTEX, "KERNEL32.dll": ("Sleep",)}, exports=("c10",))
    cpu = Dll(imports={"c10.dll": ("c10",), "MSVCP140.dll": MUTEX}, exports=("at",))
    return {
        "c10.dll": write(c10),
        "shm.dll": write(Dll(imports={"torch_cpu.dll": ("at",)})),
        "torch_cpu.dll": write(cpu),
    }


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write *files* into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def distribution(site: Path, name: str, version: str) -> None:
    """Write the metadata of a distribution with all that lies in its package."""
    home = site / f"{name}-{version}.dist-info"
    home.mkdir(parents=True)
    (home / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n")
    (home / "WHEEL").write_text("Wheel-Version: 1.0\nTag: cp311-cp311-win_amd64\n")
    (home / "INSTALLER").write_text("pip\n")
    files = [p for p in sorted((site / name).rglob("*")) if p.is_file()]
    rows = [f"{p.relative_to(site).as_posix()},sha256=x,{p.stat().st_size}" for p in files]
    (home / "RECORD").write_text("\n".join([*rows, f"{home.name}/RECORD,,"]) + "\n")


def package(site: Path, version: str = "2.9.1") -> Path:
    """Put torch *version* into *site*; return its folder."""
    home = site / "torch"
    put(home / "lib", torch())
    extension = Dll(imports={"python311.dll": ("PyInit",), "torch_cpu.dll": ("at",)})
    put(home, {"_C.cp311-win_amd64.pyd": write(extension), "__init__.py": b""})
    text = f"__version__ = '{version}+cpu'\ndebug = False\ncuda: str = None\n"
    (home / "version.py").write_text(text)
    distribution(site, "torch", version)
    return home


def python(folder: Path, minor: int = 11, machine: str = "x64") -> None:
    """Put python.exe and its DLL into *folder*."""
    dll = Dll(version=(3, minor, *PYTHON[2:]), exports=("PyInit",), machine=machine)
    files = {"python.exe": Dll(machine=machine), f"python3{minor}.dll": dll}
    put(folder, {name: write(file) for name, file in files.items()})


def installation(root: Path, vc: Version | None = NEW, version: str = "2.9.1") -> Path:
    """Make a drive with Python 3.11, torch *version* and the VC++ runtime *vc*; return its site."""
    put(root / "Windows/System32", runtime(vc) if vc else {})
    python(root / "Python311")
    site = root / SITE
    package(site, version)
    return site
