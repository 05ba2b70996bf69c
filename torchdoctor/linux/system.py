"""What the dynamic loader says of itself: the folders it searches, and those that come before.

``ld.so --help`` tells them since glibc 2.33. Older ones have folders of their own below every
folder that is searched (``tls/haswell/x86_64``), which were given up in 2.37.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from .objects import SharedObject

LIBC = "libc.so.6"
_SEARCHED = re.compile(r"(?m)^  (/\S+) \(system search path\)")
_FOLDER = re.compile(r"(?m)^  (\S+) \((.*)searched\)")
_DEFAULT = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "ppc64": "powerpc64le-linux-gnu",
    "s390": "s390x-linux-gnu",
}


@dataclass(frozen=True, slots=True)
class System:
    """Folders that are searched last, and folders below each that come before it."""

    default: tuple[str, ...]
    subfolders: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    """Names of folders below glibc-hwcaps, the best first."""


def of_help(text: str, machine: str) -> System:
    """Return what ``ld.so --help`` says in *text*; without, what most systems have."""
    default = tuple(_SEARCHED.findall(text)) or _usual(machine)
    new, _, old = text.partition("Legacy HWCAP")
    new = new.partition("Subdirectories of glibc-hwcaps")[2]
    capabilities = tuple(name for name, _ in _FOLDER.findall(new))
    subfolders = tuple(posixpath.join("glibc-hwcaps", name) for name in capabilities)
    return System(default, (*subfolders, *_legacy(_FOLDER.findall(old))), capabilities)


def _usual(machine: str) -> tuple[str, ...]:
    name = _DEFAULT.get(machine)
    of_debian = (f"/lib/{name}", f"/usr/lib/{name}") if name else ()
    return (*of_debian, "/lib64", "/usr/lib64", "/lib", "/usr/lib")


def _legacy(found: list[tuple[str, str]]) -> tuple[str, ...]:
    """Return every choice of the words, in their order, the longest first."""
    platform = [name for name, said in found if "AT_PLATFORM" in said]
    names = [name for name, said in found if "AT_PLATFORM" not in said]
    words = [n for n in names if n == "tls"] + platform + [n for n in names if n != "tls"]
    choices = range((1 << len(words)) - 1, 0, -1) if len(words) < 8 else ()  # noqa: PLR2004
    top = len(words) - 1
    return tuple(
        "/".join(word for i, word in enumerate(words) if choice >> (top - i) & 1)
        for choice in choices
    )


def glibc(libc: SharedObject | None) -> tuple[int, int] | None:
    """Return the release of the C library *libc*, by the newest version that it defines."""
    found = filter(None, map(release, libc.offers if libc else ()))
    return max(found, default=None)


def release(version: str) -> tuple[int, int] | None:
    """Return the release that a *version* of the C library is called after, if it is one."""
    found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
    return (int(found[1]), int(found[2])) if found else None
