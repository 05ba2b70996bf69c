"""What torch needs of Windows, by its release and by the file that a message names.

For texts, and for machines whose DLLs were not looked into; ``windows.toml``. Where the DLLs are
known, they are asked instead.
"""

from __future__ import annotations

from torchdoctor import requirements
from torchdoctor.tables import load
from torchdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Need:
    """The VC++ runtime that a release needs, and the error number without it.

    ``at_least`` is the oldest that was seen to do, ``too_old`` the newest that was seen not to.
    """

    at_least: str
    too_old: str
    code: str
    why: str
    source: str

    def lacks(self, version: str) -> bool:
        """Tell whether VC++ *version* is known to be too old; between the two it is not known."""
        mine, last = _numbers(version), _numbers(self.too_old)
        return mine[: len(last)] <= last

    def is_met(self, version: str) -> bool:
        """Tell whether VC++ *version* is known to be new enough."""
        return not older(version, self.at_least)


def needs(torch: str) -> Need | None:
    """Return what torch *torch* needs of VC++; None where nothing is known to be needed."""
    for row in load("windows")["needs"]:
        if _among(torch, row["versions"]):
            return Need(row["at_least"], row["too_old"], row["code"], row["why"], row["source"])
    return None


def missing(named: str, torch: str | None) -> tuple[str, str] | None:
    """Return (the DLL that is missing, source) behind error 126 that names the file *named*.

    *torch* is the release; None, not known, takes the release that is known for it.
    """
    for row in load("windows")["missing"]:
        if row["named"] == named.lower() and (torch is None or _among(torch, row["versions"])):
            return row["lacks"], row["source"]
    return None


@dataclass(frozen=True, slots=True)
class Carrier:
    """A package that brings an msvcp140.dll which is too old for torch 2.9 to 2.14."""

    module: str
    """What is imported."""
    dll: str
    """The version of that DLL."""
    source: str


def carries(name: str, version: str | None) -> Carrier | None:
    """Return what the package *name* brings, if that is too old; None for a version takes it so.

    None where it is known to bring none, or a newer one, and where nothing is known.
    """
    for row in load("windows")["carrier"]:
        if name not in row["names"]:
            continue
        first = row.get("first") or row.get("last")
        newer = version and first and _among(version, f">={first}") and version != row.get("last")
        return None if newer else Carrier(row["module"], row["dll"], row["source"])
    return None


def newest() -> str:
    """Return the newest VC++ redistributable that is known."""
    return str(load("windows")["newest"])


def installer() -> str:
    """Return where the current VC++ redistributable for x64 is."""
    return str(load("windows")["install"])


def older(one: str, other: str) -> bool:
    """Tell whether version *one* is older than *other*, as far as both go."""
    mine, its = _numbers(one), _numbers(other)
    return mine[: len(its)] < its


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(".") if part.isdecimal()]


def _among(version: str, versions: str) -> bool:
    return requirements.accepts(versions, version.partition("+")[0]) is True
