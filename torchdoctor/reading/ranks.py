"""Which process of a job a line of a log is from, where several print into one text."""

from __future__ import annotations

import re

from torchdoctor.facts import Symptom

RANK = "rank"
"""The value of a symptom that says which ranks printed it, the first one first: "3,0,1"."""
LONGEST = 300
SAMPLE = 8 * 1024
FEWEST = 3

_BEFORE = re.compile(
    r"[ \t]{0,4}(?:\[rank ?(\d{1,5})\]:|\[\d{1,5},(\d{1,5})\]<std(?:err|out)>:"
    r"|\[[A-Za-z][\w-]{0,20}?:?(\d{1,5})\]:)[ \t]?"
)
"""torch's own, Open MPI's ``--tag-output``, torchrun's ``--tee`` ([default3]:), [node:3]."""
_LABEL = re.compile(r"[ \t]{0,4}(\d{1,5}): ")
"""What ``srun --label`` puts before a line; alone it might be anything."""
_INSIDE = re.compile(r"\b[Rr]ank (\d{1,5})\]")
"""[Rank 1], [PG ID 0 PG GUID 0(default_pg) Rank 1]."""


def of(symptom: Symptom) -> tuple[str, ...]:
    """Return the ranks that printed *symptom*, the first one first; none where it is not told."""
    said = symptom.values.get(RANK, "")
    return tuple(said.split(",")) if said else ()


def labelled(text: str) -> bool:
    """Tell whether most lines of *text* begin with the number of a task."""
    lines = [line for line in text[:SAMPLE].splitlines() if line.strip()]
    count = sum(1 for line in lines if _LABEL.match(line))
    return count >= FEWEST and count * 2 > len(lines)


def split(line: str, *, labelled: bool) -> tuple[str, str]:
    """Return the rank that *line* is from ("" where it is not told), and the line without it."""
    found = _BEFORE.match(line) or (_LABEL.match(line) if labelled else None)
    if found is None:
        return "", line
    return next(group for group in found.groups() if group), line[found.end() :]


def of_line(beginning: str, *, labelled: bool) -> str:
    """Return the rank that a line is from, by its *beginning*; "" where it is not told."""
    rank, rest = split(beginning[:LONGEST], labelled=labelled)
    inside = _INSIDE.findall(rest[-LONGEST:])
    return rank or (inside[-1] if inside else "")
