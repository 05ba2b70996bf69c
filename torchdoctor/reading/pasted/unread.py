"""What is there of a known form and could not be used: out of order, cut, half missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.reading.pasted import conda, machine, normalise, python
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.traceback import exceptions

_ORDER = (
    "PyTorch version",
    "Is debug build",
    "CUDA used to build",
    "OS",
    "GCC version",
    "Libc version",
    "Python version",
    "Python platform",
    "Is CUDA available",
    "CUDA runtime version",
    "GPU models and configuration",
    "Nvidia driver version",
    "cuDNN version",
    "Is XNNPACK available",
    "Versions of relevant libraries",
)
_LATER = ("Libc version", "Python platform", "Is XNNPACK available")
_ALWAYS = tuple(key for key in _ORDER[:-1] if key not in _LATER)
"""What every layout asks; others came with later releases."""
_OPENING = "Collecting environment information..."
_ORDERED = re.compile(rf"\s{{0,12}}({'|'.join(map(re.escape, _ORDER))})\b.{{0,16}}?:")
_FRAME = re.compile(r'\s{0,8}File "[^"\n]{1,500}", (?:line \d|in )')
_START = re.compile(r"\s{0,8}(?:\S{0,12} )?Traceback \(most recent call last\)")
_FEWEST = 4
MOST = 40

NEEDS_ABOVE = (
    (
        r"The current PyTorch install supports CUDA capabilities",
        r".*is not compatible with the current",
        "which GPU is not compatible does not stand above what the build supports",
    ),
    (
        r"\s+Minimum and Maximum cuda capability",
        r".*is of cuda capability",
        "a warning about a GPU is out of order",
    ),
    (
        r"\s+\(\d{1,2}\.\d\) - \(\d{1,2}\.\d\)",
        r"\s+Minimum and Maximum",
        "a warning about a GPU is out of order",
    ),
    (
        r"\s{1,12}MIG \d\S* +Device",
        r"\s*(?:GPU|MIG) ",
        "which GPU a MIG line belongs to cannot be told",
    ),
    (
        r"\s*\|\s+\d{1,3}\s+\S.{1,60}\|\s+[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:",
        r"\s*[|+][-=+|]{10}",
        "the table of nvidia-smi is out of order or was wrapped",
    ),
    (
        r"\s{1,6}Marketing Name:",
        r"\s{1,6}(?:Uuid|Name):",
        "the agents of rocminfo are out of order",
    ),
    (r"\s{2,60}\"[A-Za-z]:\\\S+\.dll\"", r".*loading\s*$", "an error is out of order"),
    (
        r'\s+"\w+": ',
        r'\s*(?:[\[{]|"\w+": .*,\s*$|\}?,?\s*[\[{])',
        "a JSON listing is out of order or was cut",
    ),
    (r"\s{4}@torch\.library", r'\s*File "', "lines of a traceback are out of order"),
    (
        r"\s{4}import (?:torch|spacy)",
        r'\s*(?:File "|Traceback|>>>|import|from|$)',
        "lines of a traceback are out of order",
    ),
)
"""A line, what the line above it has to be, and what is wrong when it is not."""
NEEDS_BELOW = (
    (
        r"#\s{1,4}Name\s{2,60}Version\s{2,60}Build",
        None,
        "the rows of a conda listing are not below its header",
    ),
    (
        r"\s{0,4}Package\s{1,80}Version\s*$",
        r"\s{0,4}-{3,}\s+-{3,}\s*$",
        "the rows of a pip listing are not below its header",
    ),
    (
        r"\s{0,2}Package\s{2,60}Version\s{2,60}Build\s{2,60}Size",
        r"\S+\s+\S*\d",
        "the rows of a pixi listing are not below its header",
    ),
    (
        r"\s{0,2}[\w.-]+\s+\S+\s+.{0,120}\b[KMG]i?B\s+(?:conda|pypi)\s*$",
        r"(?!)",
        "a row of a pixi listing was cut",
    ),
    (r"@EXPLICIT", r"https?://", "the packages of an explicit listing are not below its header"),
    (
        r"\s{0,4}Name: [\w.-]+\s*$",
        r"\s*Version: ",
        "the version of a package does not stand below its name",
    ),
    (
        r".{0,80}NVIDIA-SMI \S+ +(?:Driver|KMD) Version",
        r"\s*[|+][-=+|]{10}",
        "the table of nvidia-smi is out of order or was wrapped",
    ),
    (
        r".{0,40}which is of cuda capability",
        r"\s*$|\s+(?:Min|PyTorch)",
        "a warning about a GPU is out of order",
    ),
    (r".*ERROR.{1,200}Error loading\s*$", r"\s+\"", "an error is out of order"),
)
"""A line, what the line below it has to be, and what is wrong when it is not."""
COMMANDS = (
    (r"uname -m|arch$", r"\s*(?:x86_64|aarch64|arm64|ppc64le|riscv64|i686|armv7l)\s*$"),
    (r"uname -r", r"\s*\d+\.\d+\.\d+"),
    (r".*systemctl is-active", r"\s*(?:in)?active\s*$|\s*(?:failed|unknown)\s*$"),
    (r"nvidia-smi --query-gpu", r".*,|\s*(?:compute_cap|\d+\.\d)\s*$|.*(?:fail|Fail|not)"),
    (r"nvidia-smi\s*$", r"\s*$|.*(?:NVIDIA-SMI|\d\d:\d\d:\d\d|NVML|nvidia-smi|No devices|\+---)"),
    (r"nvidia-smi -L", r"\s*GPU |.*(?:fail|Fail|not|No )"),
    (r"nvidia-smi topo", r"\s*(?:\x1b\S*)?GPU0|\s*$"),
    (r"poetry show", r"[a-z0-9][\w.-]* "),
    (r"(?:pip\d?|uv pip) list", r"\s*(?:Package|[\w.-]+\s+\d|$)"),
    (r"pip\d? show", r"\s*(?:Name: |WARNING)"),
    (r"df .*/dev/shm", r"\s*(?:Filesystem|\S+ +\S+ +\S+ +\S+ +\d+% +/)"),
)
"""A command and how its answer begins."""


def read(parts: Sequence[Line], *, traced: bool) -> Iterator[str]:
    """Yield what could not be used of *parts*, one sentence each, each once.

    *traced* says that a failed import was read from them.
    """
    seen: set[str] = set()
    for what in _all(parts, traced=traced):
        if what not in seen and len(seen) < MOST:
            seen.add(what)
            yield what


def _all(parts: Sequence[Line], *, traced: bool) -> Iterator[str]:
    if _listing_is_mixed_up(parts):
        yield "the lines of the listing are out of order; only single lines were read"
    if lacking := _lacking(parts):
        yield f"the listing of collect_env is not whole; it lacks {', '.join(lacking)}"
    if why := _torn_traceback(parts, traced=traced):
        yield why
    for place, line in enumerate(parts):
        if not line.text:
            continue
        above = parts[place - 1].text[:600] if place else ""
        below = parts[place + 1] if place + 1 < len(parts) else Line("")
        yield from _beside(line, above, below)
    yield from python.unanswered(parts)


def _beside(  # noqa: C901 - three tables are gone through
    line: Line, above: str, below: Line
) -> Iterator[str]:
    text = line.text[:600]
    if normalise.GAP in text:
        yield "it is long; what is far from any line of a known form was not looked at"
    if line.kind == "command":
        for pattern, answer in COMMANDS:
            answered = below.kind == "output" and bool(re.match(answer, below.text[:300]))
            if re.match(pattern, text) and not answered:
                yield f"the answer to {text[:80]!r} does not stand below it"
        echo = machine.ECHO.match(text)
        if echo and not (below.kind == "output" and machine.fits(echo[1], below.text.strip())):
            yield f"the answer to {text[:80]!r} does not stand below it"
        return
    for pattern, before, what in NEEDS_ABOVE:
        if re.match(pattern, text) and not re.match(before, above):
            yield what
    for pattern, after, what in NEEDS_BELOW:
        if re.match(pattern, text):
            fits = (
                re.match(after, below.text[:300]) if after else conda.row(below.text, strict=False)
            )
            if not fits:
                yield what


def _keys(parts: Sequence[Line]) -> list[str]:
    """Return the questions of collect_env in the order in which they stand."""
    return [m[1] for line in parts if line.kind == "output" and (m := _ORDERED.match(line.text))]


def _lacking(parts: Sequence[Line]) -> list[str]:
    """Return the questions that every layout of collect_env has and this one lacks."""
    found = set(_keys(parts))
    opened = bool(found) and any(line.text.strip() == _OPENING for line in parts)
    if not opened and len(found) < _FEWEST:
        return []
    return [key for key in _ALWAYS if key not in found]


def _listing_is_mixed_up(parts: Sequence[Line]) -> bool:
    keys = _keys(parts)
    places = [_ORDER.index(key) for key in keys]
    back = sum(1 for i, p in enumerate(places) if i and p < places[i - 1])
    # vLLM's listing has the same keys in sections of another order.
    sections = any(line.text.startswith("======") for line in parts)
    return len(set(places)) >= _FEWEST and back > places.count(0) + (2 if sections else 0)


def _torn_traceback(parts: Sequence[Line], *, traced: bool) -> str | None:
    """Return what is wrong with the frames of a traceback: no error after them, or no order."""
    frames = [place for place, line in enumerate(parts) if _FRAME.match(line.text)]
    loose = [p for p in frames if p and not _may_stand_above_a_frame(parts[p - 1])]
    headless = any(
        _START.match(line.text) and not any(_FRAME.match(x.text) for x in parts[p + 1 : p + 3])
        for p, line in enumerate(parts)
    )
    if loose or headless:
        return "the lines of a traceback are out of order; what led to what was not read"
    ends = exceptions("\n".join(line.text for line in parts)) if frames else ()
    if frames and not traced and not ends:
        return "lines of a traceback without the error that ended it"
    return None


def _may_stand_above_a_frame(line: Line) -> bool:
    text = line.text
    return (
        bool(_START.match(text))
        or text.startswith("  ")
        or not text.strip()
        or (line.kind != "output" and "import" not in text)
    )
