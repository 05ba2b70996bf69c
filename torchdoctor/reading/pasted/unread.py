"""What is there of a known form and could not be used: out of order, cut, half missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.reading.pasted import forms, neighbours, normalise, python
from torchdoctor.reading.pasted.lines import Line

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
_NEEDED = (
    "PyTorch version",
    "CUDA used to build",
    "OS",
    "Python version",
    "Is CUDA available",
    "CUDA runtime version",
    "GPU models and configuration",
    "Nvidia driver version",
)
"""What every layout asks, and a fact comes of."""
_OWN = re.compile(
    r"\s{0,12}((?:CUDA|ROC[Mm]|HIP|XPU)(?: SDK)? used to build PyTorch|Is debug build|"
    r"Python platform|Clang version|CMake version|Libc version|Is (?:CUDA|XPU|XNNPACK) available|"
    r"CUDA runtime version|CUDA_MODULE_LOADING set to|GPU models and configuration|"
    r"Nvidia driver version|cuDNN version|HIP runtime version|MIOpen runtime version)\s{0,32}:"
)
"""Lines that nobody writes by hand: two of them are a part of such a listing."""
_OPENING = "Collecting environment information..."
_ORDERED = re.compile(rf"\s{{0,12}}({'|'.join(map(re.escape, _ORDER))})(?: PyTorch)?\s{{0,32}}:")
_FRAME = re.compile(r'\s{0,8}File "[^"\n]{1,500}", (?:line \d|in )')
_START = re.compile(r"(?:\s{0,8}(?:\S{0,12} )?|.{0,120}: )Traceback \(most recent call last\)")
_FIRST = re.compile(r".{0,40}?(?:\bFile |\bCell |<ipython-input)|\s*\|?\s*$")
"""What stands below the head of a traceback, also in notebooks and behind the number of a rank."""
_FEWEST = 4
MOST = 40


def read(parts: Sequence[Line]) -> Iterator[str]:
    """Yield what could not be used of *parts*, one sentence each, each once."""
    seen: set[str] = set()
    for what in _all(parts):
        if what not in seen and len(seen) < MOST:
            seen.add(what)
            yield what


def _all(parts: Sequence[Line]) -> Iterator[str]:
    if _listing_is_mixed_up(parts):
        yield "the lines of the listing are out of order; only single lines were read"
    if lacking := _lacking(parts):
        yield f"the listing of collect_env is not whole; it lacks {', '.join(lacking)}"
    if why := _torn_traceback(parts):
        yield why
    for place, line in enumerate(parts):
        if normalise.GAP in line.text[:600]:
            yield "it is long; what is far from any line of a known form was not looked at"
        if line.text:
            yield from neighbours.beside(parts, place)
    yield from forms.read(parts)
    yield from python.unanswered(parts)


def _keys(parts: Sequence[Line]) -> list[str]:
    """Return the questions of collect_env in the order in which they stand."""
    return [m[1] for line in parts if line.kind == "output" and (m := _ORDERED.match(line.text))]


def _lacking(parts: Sequence[Line]) -> list[str]:
    """Return the questions that every layout of collect_env has and this one lacks."""
    found = set(_keys(parts))
    opened = bool(found) and any(line.text.strip() == _OPENING for line in parts)
    if opened or len(found) >= _FEWEST:
        return [key for key in _NEEDED if key not in found]
    own = {m[1] for line in parts if line.kind == "output" and (m := _OWN.match(line.text[:200]))}
    # A few lines picked out of a listing are common, and begin with the one that matters most.
    return ["PyTorch version"] if len(own) > 1 and "PyTorch version" not in found else []


def _listing_is_mixed_up(parts: Sequence[Line]) -> bool:
    keys = _keys(parts)
    places = [_ORDER.index(key) for key in keys]
    back = sum(1 for i, p in enumerate(places) if i and p < places[i - 1])
    # vLLM's listing has the same keys in sections of another order.
    sections = any(line.text.startswith("======") for line in parts)
    return len(set(places)) >= _FEWEST and back > places.count(0) + (2 if sections else 0)


def _torn_traceback(parts: Sequence[Line]) -> str | None:
    """Return what is wrong with the order of the frames of a traceback."""
    frames = [place for place, line in enumerate(parts) if _FRAME.match(line.text)]
    loose = [p for p in frames if p and not _may_stand_above_a_frame(parts[p - 1])]
    headless = any(
        _START.match(line.text) and not (p + 1 < len(parts) and _FIRST.match(parts[p + 1].text))
        for p, line in enumerate(parts)
    )
    if loose or headless:
        return "the lines of a traceback are out of order; what led to what was not read"
    return None


def _may_stand_above_a_frame(line: Line) -> bool:
    text = line.text
    return (
        bool(_START.match(text))
        or text.startswith("  ")
        or not text.strip()
        or (line.kind != "output" and "import" not in text)
    )
