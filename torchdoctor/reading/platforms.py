"""Read what the host probe said of the operating system.

Sources: os-release(5); proc_cpuinfo(5); "Comparing WSL versions" of Microsoft; PE machine numbers.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Literal

from torchdoctor.facts import Platform
from torchdoctor.reading.said import Said, Unreadable, said

if TYPE_CHECKING:
    from torchdoctor.child import Run


ARM64_PE = 0xAA64
_CPUINFO_MARKS = (
    (re.compile(r"^flags\s*:.*\b(?:lm|sse2)\b", re.MULTILINE), "x86"),
    (re.compile(r"^(?:CPU implementer|Features)\s*:", re.MULTILINE), "arm"),
    (re.compile(r"^isa\s*:\s*rv", re.MULTILINE), "riscv"),
    (re.compile(r"^cpu\s*:\s*POWER", re.MULTILINE), "power"),
)


def platform(run: Run) -> Platform:
    """Read the operating system; raises Unreadable."""
    answer = said(run, "system", "distribution", "libc", "wsl", "tegra", "cpu")
    system = answer.part("system")
    name = system.line("platform")
    if name is None:
        raise Unreadable("system: it does not name its platform")
    if name == "win32":
        return _windows(answer)
    return _mac(system) if name == "darwin" else _unix(name, answer)


def _unix(name: str, answer: Said) -> Platform:
    system = answer.part("system")
    uname = system.part("uname")
    kernel_release = uname.line("release")
    machine = uname.line("machine") or ""
    release = os_release(answer.part("distribution"))
    libc, libc_version = _libc(answer.part("libc"))
    return Platform(
        system=name,
        machine=machine,
        name=release.get("PRETTY_NAME") or release.get("NAME") or "",
        distribution=release.get("ID") or None,
        like=tuple(release.get("ID_LIKE", "").split()),
        version=release.get("VERSION_ID") or None,
        kernel=kernel_release,
        libc=libc,
        libc_version=libc_version,
        wsl=_wsl(answer.part("wsl")),
        emulated=_emulated(machine, system, answer.part("cpu")),
        jetson=_jetson(kernel_release, answer.part("tegra")),
    )


def _mac(system: Said) -> Platform:
    uname, sysctl = system.part("uname"), system.part("sysctl")
    version = sysctl.line("kern.osproductversion")
    return Platform(
        system="darwin",
        machine=uname.line("machine") or "",
        name=f"macOS {version or ''}".strip(),
        version=version,
        kernel=uname.line("release"),
        emulated=sysctl.number("sysctl.proc_translated") == 1,
    )


def _windows(answer: Said) -> Platform:
    system = answer.part("system")
    windows = system.part("windows")
    registry = windows.part("registry")
    build = windows.number("build") or 0
    name = registry.line("ProductName") or "Windows"
    if build >= 22000:  # noqa: PLR2004 - the registry of Windows 11 still says 10
        name = name.replace("Windows 10", "Windows 11")
    variables = system.part("architecture")
    machine = variables.line("PROCESSOR_ARCHITEW6432") or variables.line("PROCESSOR_ARCHITECTURE")
    native = answer.part("cpu").part("wow64").number("native")
    for_arm = "ARM64" in (system.text("python") or "").upper()
    return Platform(
        system="win32",
        machine=machine or "",
        name=" ".join(filter(None, (name, registry.line("DisplayVersion")))),
        version=f"{windows.number('major')}.{windows.number('minor')}.{build}",
        kernel=f"{windows.number('major')}.{windows.number('minor')}.{build}",
        emulated=None if native is None else native == ARM64_PE and not for_arm,
    )


def os_release(piece: Said) -> dict[str, str]:
    """Return os-release by its names, or the same names for what distro found."""
    text = piece.text("os_release")
    if text is None:
        found = piece.part("distro")
        return {
            "PRETTY_NAME": piece.line("name") or "",
            "ID": found.line("id") or "",
            "ID_LIKE": found.line("like") or "",
            "VERSION_ID": found.line("version") or "",
        }
    values = {}
    for line in text.splitlines():
        name, mark, value = line.strip().partition("=")
        if mark and not name.startswith("#"):
            try:
                values[name] = " ".join(shlex.split(value))
            except ValueError:
                values[name] = value.strip("\"'")
    return values


def _libc(piece: Said) -> tuple[str | None, str | None]:
    name, _, version = (piece.line("confstr") or "").partition(" ")
    if name:
        return name.lower(), version or None
    return ("musl", None) if piece.texts("musl") else (None, None)


def _wsl(piece: Said) -> Literal[1, 2] | None:
    """Tell WSL 1 and 2 apart: the first has Microsoft's version of Linux 4.4, in that spelling."""
    release = piece.text("osrelease") or ""
    if "Microsoft" in release or (not release and "Microsoft@" in (piece.text("version") or "")):
        return 1
    marks = "microsoft-standard" in release or "WSL2" in release
    if marks or piece.flag("interop") or (piece.line("distribution") and piece.flag("dxg")):
        return 2
    return None


def _emulated(machine: str, system: Said, cpu_piece: Said) -> bool | None:
    """Tell whether uname's machine is made up; None when nothing else tells the machine."""
    asked = _family(machine)
    info = cpu_piece.text("cpuinfo") or ""
    if "VirtualApple" in info:  # Rosetta in a virtual machine of macOS
        return True
    native = _family(system.line("kernel_machine") or "")
    if native is None:
        native = next((family for mark, family in _CPUINFO_MARKS if mark.search(info)), None)
    return None if asked is None or native is None else asked != native


def _family(machine: str) -> str | None:
    if re.fullmatch(r"x86_64|i[3-6]86|amd64", machine, re.IGNORECASE):
        return "x86"
    if re.match(r"aarch64|arm", machine):
        return "arm"
    return next((name for name in ("riscv", "power") if machine.startswith((name, "ppc"))), None)


def _jetson(kernel_release: str | None, piece: Said) -> bool:
    model = (piece.text("model") or "").lower()
    return bool(
        piece.text("release") or "tegra" in (kernel_release or "").lower() or "jetson" in model
    )
