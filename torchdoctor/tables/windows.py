"""What torch needs of Windows, by its release and by the file that a message names.

For texts, and for machines whose DLLs were not looked into; ``windows.toml``. Where the DLLs are
known, they are asked instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from torchdoctor.tables import load


@dataclass(frozen=True, slots=True)
class Need:
    """The VC++ runtime that a release needs, and the error number without it."""

    at_least: str
    code: str
    why: str
    source: str


def needs(torch: str) -> Need | None:
    """Return what torch *torch* needs of VC++; None where nothing is known to be needed."""
    for row in load("windows")["needs"]:
        if _among(torch, row["versions"]):
            return Need(row["at_least"], row["code"], row["why"], row["source"])
    return None


def missing(named: str, torch: str | None) -> tuple[str, str] | None:
    """Return (the DLL that is missing, source) behind error 126 that names the file *named*.

    *torch* is the release; None, not known, takes the release that is known for it.
    """
    for row in load("windows")["missing"]:
        if row["named"] == named.lower() and (torch is None or _among(torch, row["versions"])):
            return row["lacks"], row["source"]
    return None


def carries(name: str, version: str) -> tuple[str, str] | None:
    """Return (version of its msvcp140.dll, source) where a package brings one before 14.40.

    None where it is known to bring none, or a newer one, and where nothing is known.
    """
    for row in load("windows")["carrier"]:
        if name not in row["names"]:
            continue
        first = row.get("first") or row.get("last")
        older = not first or not _among(version, f">={first}") or version == row.get("last")
        return (row["dll"], row["source"]) if older else None
    return None


def newest() -> str:
    """Return the newest VC++ redistributable that is known."""
    return str(load("windows")["newest"])


def installer() -> str:
    """Return where the current VC++ redistributable for x64 is."""
    return str(load("windows")["install"])


def older(one: str, other: str) -> bool:
    """Tell whether version *one* is older than *other*, as far as both go."""
    mine, its = ([int(p) for p in text.split(".") if p.isdecimal()] for text in (one, other))
    return mine[: len(its)] < its


def _among(version: str, versions: str) -> bool:
    try:
        return SpecifierSet(versions).contains(Version(version.partition("+")[0]), prereleases=True)
    except InvalidVersion:
        return False
