"""Paths of the machine under test, compared as text: its system need not be ours."""

from __future__ import annotations

import re

_USER_SITE = re.compile(r"/\.local/lib/|/appdata/roaming/python|/localcache/", re.IGNORECASE)
_WINDOWS = re.compile(r"[A-Za-z]:|\\\\")


def plain(path: str) -> str:
    """Return *path* in the form to compare: forward slashes, none at the end.

    A Windows path also without regard to case.
    """
    windows = bool(_WINDOWS.match(path)) or "\\" in path
    text = path.replace("\\", "/") if windows else path
    parts: list[str] = []
    for part in text.split("/"):
        if part == ".." and parts and parts[-1] not in ("", ".."):
            parts.pop()
        elif part != ".":
            parts.append(part)
    joined = "/".join(parts).rstrip("/")
    return joined.casefold() if windows else joined


def same(one: str, other: str) -> bool:
    """Tell whether two paths name one place. Links are not followed."""
    return plain(one) == plain(other)


def inside(path: str, folder: str) -> bool:
    """Tell whether *path* is *folder* or lies in it."""
    return bool(folder) and (plain(path) + "/").startswith(plain(folder) + "/")


def foreign(folder: str, executable: str) -> bool:
    """Tell whether a site-packages *folder* is of another Python than *executable*.

    By the trees that both lie in; False where either does not show its tree, or for a user site.
    """
    site = re.match(
        r"(.+)/lib(?:64|/python\d[\d.]*t?)*/(?:site|dist)-packages$", plain(folder), re.IGNORECASE
    )
    python = re.match(r"(.+?)(?:/bin|/scripts)?/python[\w.]*$", plain(executable), re.IGNORECASE)
    if site is None or python is None or _USER_SITE.search(plain(folder)):
        return False
    return not (inside(executable, site[1]) or inside(folder, python[1]))


def join(folder: str, *names: str) -> str:
    """Return *names* below *folder*, with the separator that *folder* uses."""
    separator = "\\" if "\\" in folder else "/"
    return separator.join((folder.rstrip("/\\"), *names))


def last(path: str) -> str:
    """Return the last part of *path*."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def entries(variable: str) -> tuple[str, ...]:
    """Return the folders in the value of a variable such as PYTHONPATH or LD_LIBRARY_PATH."""
    separator = ";" if ";" in variable or _WINDOWS.match(variable) else ":"
    return tuple(entry for entry in variable.split(separator) if entry)


def package_of(file: str) -> str:
    """Return the package that a compiled file in site-packages is of; empty if none is told."""
    parts = plain(file).split("/")
    start = next((i + 1 for i, p in enumerate(parts) if p.endswith("-packages")), 0)
    top = parts[start].partition(".")[0] if start and start < len(parts) else ""
    name = re.sub(r"_(?:2_)?cuda$|_cuda_lib$|_c$", "", top).replace("_", "-")
    return "" if name in ("torchgen", "functorch") else name
