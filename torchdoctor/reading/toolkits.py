"""Read what the host probe said of CUDA toolkits.

Source: the layout of version.json in CUDA toolkits.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from torchdoctor.facts import Toolkit
from torchdoctor.reading.said import Said, said

if TYPE_CHECKING:
    from torchdoctor.child import Run


def toolkits(run: Run) -> tuple[Toolkit, ...]:
    """Read the CUDA toolkits, those that a variable names first; raises Unreadable."""
    found = (_toolkit(piece) for piece in said(run, "toolkits").parts("toolkits"))
    return tuple(toolkit for toolkit in found if toolkit is not None)


def _toolkit(piece: Said) -> Toolkit | None:
    path = piece.text("path") or ""
    told = {
        "version.json": _json_release(piece.text("version_json")),
        "version.txt": _release(r"CUDA Version ([0-9]+\.[0-9]+)", piece.text("version_txt")),
        "include/cuda.h": _header_release(piece.text("header")),
        "its folder's name": _release(
            r"(?:cuda-|[/\\]v)([0-9]{1,2}\.[0-9]{1,2})[/\\]?$", piece.text("real")
        ),
    }
    source, release = next(((s, r) for s, r in told.items() if r), ("nvcc", None))
    if release is None and piece.text("nvcc") is None:
        return None
    return Toolkit(release, path, source)


def _json_release(text: str | None) -> str | None:
    """Return nvcc's release, or else the toolkit's, from version.json."""
    if text is None:
        return None
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for name in ("cuda_nvcc", "nvcc", "cuda"):
        part = parts.get(name) if isinstance(parts, dict) else None
        version = part.get("version") if isinstance(part, dict) else None
        if isinstance(version, str) and (found := _release(r"^([0-9]+\.[0-9]+)", version)):
            return found
    return None


def _header_release(line: str | None) -> str | None:
    found = _release(r"#define CUDA_VERSION\s+([0-9]{4,6})\b", line)
    return None if found is None else cuda_release(int(found))


def cuda_release(number: int | None) -> str | None:
    """Return "12.4" for 12040, None for what is no such number."""
    if number is None or not 1000 <= number < 1000000:  # noqa: PLR2004 - 1.0 to 999.9
        return None
    return f"{number // 1000}.{number % 1000 // 10}"


def _release(pattern: str, text: str | None) -> str | None:
    found = re.search(pattern, text or "")
    return found[1] if found else None
