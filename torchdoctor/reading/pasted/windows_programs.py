"""Lists of programs installed on Windows: the Visual C++ runtimes among them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import LISTED, TOLD, Said

_RUNTIME = re.compile(
    r"Microsoft Visual C\+\+ (?P<years>20\d\d(?:[-\u2013]20\d\d)?|v14)\s+(?:(?P<first>\(?x(?:64|"
    r"86)\)?|\(?Arm64\)?)\s+)?"
    r"(?:Redistributable|(?:Minimum|Additional) Runtime)(?:\s+\(?(?P<second>x64|x86|Arm64)\)?)?"
    r"[\s,:|\u2013-]{0,80}(?P<version>\d{1,2}\.\d{1,3}(?:\.\d{3,6})?(?:\.\d{1,4})?)?",
    re.IGNORECASE,
)
_WINGET = re.compile(
    r"Microsoft\.VCRedist\.2015\+\.(x64|x86|arm64)\s+(\d{2}\.\d{1,3}\.\d{3,6}(?:\.\d{1,4})?)",
    re.IGNORECASE,
)
LATEST = re.compile(r"2015|v14")


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield the Visual C++ runtimes that are listed, as "x64 14.36.32532"."""
    for line in lines:
        text = line.text[:1000]
        if line.kind != "output" or ("Visual C++" not in text and "VCRedist" not in text):
            continue
        if winget := _WINGET.search(text):
            yield from _said(winget[1], winget[2], "winget list", line.number)
            continue
        for found in _RUNTIME.finditer(text):
            machine = (found["first"] or found["second"] or "").strip("()").lower()
            if found["version"] and LATEST.search(found["years"]):
                yield from _said(machine, found["version"], "a list of programs", line.number)


def _said(machine: str, version: str, layout: str, number: int) -> Iterator[Said]:
    yield Said("vc_runtime", f"{machine or '?'} {version}", layout, LISTED, number)
    yield Said("platform.system", "win32", layout, TOLD, number)
