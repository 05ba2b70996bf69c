"""Runs of lines that make up one form: what tells that a part of the form is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.reading.pasted import conda, packages, topology
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import normal


def read(parts: Sequence[Line]) -> Iterator[str]:
    """Yield what is missing of the forms in *parts*, one sentence each."""
    yield from _numbered(parts)
    yield from _compared(parts)
    yield from _topology(parts)
    yield from _frames(parts)
    yield from _answers_alone(parts)
    yield from _rows_alone(parts)
    yield from _pairs(parts)
    yield from _requirements(parts)
    yield from _usage(parts)
    yield from _pins(parts)
    if lacking := _report_form(parts):
        yield f"the form of the report is not whole; it lacks {', '.join(lacking)}"


# ---- numbers and comparisons --------------------------------------------------------------------

NUMBERED: tuple[tuple[str, str], ...] = (
    (r"\s{0,8}(?:GPU models and configuration: {1,4})?GPU ?(\d{1,3}): \S", "GPUs"),
    (r"\s*\|\s{1,5}(\d{1,3})\s.*(?:Default|\b[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:)", "GPUs"),
    (r"#\s{1,6}Rank\s{1,4}(\d{1,4}) Pid", "ranks"),
)
"""Lines with a number that begins with 0 and goes up, and of what it is one."""
_HEADLESS = re.compile(r"\s{0,8}GPU ?\d{1,3}: \S")
_KEY_OF_LISTING = re.compile(
    r"\s{0,12}(?:PyTorch version|(?:CUDA|ROCM|HIP|XPU) used to build|Is \w+ (?:build|available)|"
    r"CUDA runtime version|CUDA_MODULE_LOADING)\b"
)


def _numbered(parts: Sequence[Line]) -> Iterator[str]:
    last: dict[str, int] = {}
    for place, line in enumerate(parts):
        if line.kind != "output":
            last.clear()
            continue
        text = line.text[:300]
        for pattern, what in NUMBERED:
            if (found := re.match(pattern, text)) is None:
                continue
            if int(found[1]) not in (0, last.get(pattern, -1) + 1):
                yield f"a list of {what} does not begin with 0, or one is missing"
            last[pattern] = int(found[1])
        if _HEADLESS.match(text) and _KEY_OF_LISTING.match(parts[place - 1].text if place else ""):
            yield "the heading of the GPUs does not stand above them"


_OF_RANK = re.compile(r"\s{0,4}rank (\d{1,5}): \S")
_OUTCOME = re.compile(
    r"\s{0,4}(\S.{2,80}?)(?: \+ .{1,60})?:\s{1,8}(works|hangs|fails|crashes|is fine|ok)\b"
)


def _compared(parts: Sequence[Line]) -> Iterator[str]:
    """Look for comparisons that people write down, with one side of them only."""
    ranks = {int(m[1]) for line in parts if (m := _OF_RANK.match(line.text[:200]))}
    if ranks and (len(ranks) == 1 or ranks != set(range(len(ranks)))):
        yield "what some ranks say stands in it, and not what the others say"
    outcomes = {m[2] for line in parts if (m := _OUTCOME.match(line.text[:200]))}
    if len(outcomes) == 1:
        yield "one side of a comparison stands in it, and not the other"


def _topology(parts: Sequence[Line]) -> Iterator[str]:
    columns, rows = 0, -1
    for line in [*parts, Line("")]:
        text = line.text[:600]
        if found := topology.ROW.match(text):
            if rows < 0 or int(found[1]) != rows:
                yield "the rows of nvidia-smi topo are out of order, or some are missing"
            rows = int(found[1]) + 1
            continue
        if 0 <= rows < columns:
            yield "the rows of nvidia-smi topo are out of order, or some are missing"
        head = topology.HEAD.match(text)
        columns, rows = (len(re.findall(r"GPU\d", text)), 0) if head else (0, -1)


# ---- tracebacks ---------------------------------------------------------------------------------

_FRAME = re.compile(r'(\s{0,12})File "([^"\n]{1,500})", (?:line \d|in )')
_RAISED = re.compile(
    r"\s{0,12}(?:E\s{1,4}|\[\w+\]:\s)?(?:[A-Za-z_][\w.]{0,120}(?:Error|Exception|Exit|Interrupt|"
    r"Warning|Failed|Found|Timeout|Iteration)\b|[a-z_]\w{0,60}(?:\.\w{1,60}){1,6}: |"
    r"[A-Z][a-z]+(?:[A-Z]\w*)+(?::|$)|Exception: )"
)
_GOES_ON = re.compile(
    r"\s*(?:\[end of output|\[\w+\]:|The above exc|During handling|Traceback|[~^|]|\.\.\.)"
)


def _frames(parts: Sequence[Line]) -> Iterator[str]:
    """Look at what follows each frame: its line of code, then another or the error."""
    for place, line in enumerate(parts):
        frame = _FRAME.match(line.text[:600])
        if frame is None:
            if _is_code_alone(parts, place):
                yield "the place of a line of code is missing in a traceback"
            continue
        following = parts[place + 1 : place + 40]
        first = following[0].text if following else ""
        installed = re.search(r"[\\/](?:site|dist)-packages[\\/]", frame[2])
        if installed and first.strip() and not first.startswith(f"{frame[1]} "):
            yield "a line of code is missing in a traceback"
        after = next(
            (x for x in following if x.text.strip() and not x.text.startswith(f"{frame[1]} ")),
            None,
        )
        if after is None or (
            after.kind == "output"
            and not _FRAME.match(after.text)
            and not _RAISED.match(after.text)
            and not _GOES_ON.match(after.text)
        ):
            yield "lines of a traceback without the error that ended it"


def _is_code_alone(parts: Sequence[Line], place: int) -> bool:
    """Tell whether an indented line leads to a frame or an error, and follows nothing like one."""
    above = parts[place - 1] if place else Line("?")
    below = parts[place + 1].text if place + 1 < len(parts) else ""
    if above.kind != "output" or not re.match(r"\s{4,12}[\w@]", parts[place].text):
        return False
    leads = _FRAME.match(below) or re.match(r"[A-Za-z_][\w.]*(?:Error|Exception)\b", below)
    blank, inside = not above.text.strip(), above.text.startswith("  ")
    return bool(leads) and not (blank or inside or re.search(r"Warning|[:(,{\[]$", above.text))


# ---- answers without their question -------------------------------------------------------------

_PATH = re.compile(
    r"'?(?:[A-Za-z]:\\|/)[^\s'\"]{0,300}[\\/](?:python[\d.]{0,5}(?:\.exe)?|"
    r"torch[\\/]__init__\.pyc?)'?\s*$"
)
_PATH_LIST = re.compile(r"(?:/[^\s:]{1,300}:){1,60}(?:/[^\s:]{1,300})?:?\s*$")
_SHM = re.compile(r"\S+(?: +\S+){3} +\d{1,3}% +/dev/shm\s*$")
_NOT_FOUND = re.compile(r"INFO: Could not find files for the given pattern")
_HOSTS = re.compile(r"\s{0,4}(?:127(?:\.\d{1,3}){3}|::1)\s+localhost")
_ASKS_PATH = re.compile(
    r"executable|__file__|\b(?:where|which|find|ls|dir|type|realpath|readlink)\b"
)
_ASKS_LIST = re.compile(r"\b(?:echo|printenv|env|print|ls|set|export|cat)\b|Write-Output")


def _answers_alone(parts: Sequence[Line]) -> Iterator[str]:
    for place, line in enumerate(parts):
        text = line.text[:4000]
        if line.kind != "output":
            continue
        near = _asked_right_above(parts, place)
        if _PATH.match(text) and not (near and _ASKS_PATH.search(line.command)):
            yield "a path stands in it without the question that it answers"
        elif _PATH_LIST.match(text) and not (near and _ASKS_LIST.search(line.command)):
            yield "a list of paths stands in it without the variable that holds it"
        elif _NOT_FOUND.match(text) and not near:
            yield "an answer of where stands in it without its question"
        elif _HOSTS.match(text) and "hosts" not in line.command:
            yield "a line of the hosts file stands in it without its command"
        elif _SHM.match(text) and "df" not in line.command:
            yield "a row of df stands in it without its command"


def _asked_right_above(parts: Sequence[Line], place: int) -> bool:
    """Tell whether no blank line is between the line at *place* and what was typed."""
    for line in reversed(parts[max(0, place - 12) : place]):
        if line.kind != "output":
            return True
        if not line.text.strip():
            return False
    return False


# ---- rows without a header ----------------------------------------------------------------------

_ROW = re.compile(r"\s{0,4}([a-z_][\w.-]{1,60})\s{2,60}v?\d[\w.!]{0,40}\s*$")
_CONDA_ROW = re.compile(
    r"\s{0,4}[a-z_][\w.-]{1,60}\s{2,60}\d[\w.!]{0,40}\s{2,60}[\w.]{1,80}\s{1,40}[\w./-]{2,60}\s*$"
)
_LISTS = re.compile(r"\blist\b|\bfreeze\b|\bshow\b|grep|findstr")
_HEADS = re.compile(
    r"#|\s*-{3,}|\s*(?:Package|Name)\b|\s*List of packages|.*(?:packages in environment)"
)


def _rows_alone(parts: Sequence[Line]) -> Iterator[str]:
    """Look at runs of rows that nothing stands above."""
    start = 0
    for place in range(len(parts) + 1):
        if place < len(parts) and parts[place].kind == "output" and parts[place].text.strip():
            continue
        if start < place:
            above = parts[start - 1] if start else Line("")
            listed = above.kind != "output" and _LISTS.search(above.text)
            yield from () if listed else _rows_of_block(parts[start:place])
        start = place + 1


def _rows_of_block(block: Sequence[Line]) -> Iterator[str]:
    """Look at lines that no blank one parts, from the top until a header."""
    loose = ""
    for line in block:
        text = line.text[:300]
        if packages.is_known_row(text):
            return
        if _HEADS.match(text):
            break
        if _CONDA_ROW.match(text) and conda.row(text) is not None:
            yield "rows of a conda listing stand in it without its header"
            return
        if not loose and _ROW.match(text):
            loose = text.split()[0]
    if loose and not any(packages.is_known_row(line.text) for line in block):
        yield f"what looks like rows of a listing has no header above it: {loose} and on"


# ---- openings and closings ----------------------------------------------------------------------

PAIRS: tuple[tuple[str, str, str], ...] = (
    (r"=+ End of ROCm SMI Log", r"=+ ROCm System Management Interface", "the table of rocm-smi"),
    (r"\s+\[end of output\]", r".*\[\d+ lines? of output\]", "what pip said"),
    (
        r"The above exception was the direct cause|During handling of the above exception",
        r"\s*(?:\[\w+\]:\s)?[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit)\b",
        "a chain of tracebacks",
    ),
)
"""What closes a form, what has to stand somewhere before it, and what the form is."""


def _pairs(parts: Sequence[Line]) -> Iterator[str]:
    opened: set[str] = set()
    for line in parts:
        text = line.text[:300]
        for closing, opening, what in PAIRS:
            if re.match(opening, text):
                opened.add(what)
            elif re.match(closing, text) and what not in opened:
                yield f"the beginning of {what} is missing"


_USAGE = re.compile(r"usage: ([\w./-]{1,80})")


def _usage(parts: Sequence[Line]) -> Iterator[str]:
    """Look for the error that a program gives below its usage."""
    for place, line in enumerate(parts):
        if line.kind == "output" and (found := _USAGE.match(line.text[:200])):
            after = [one.text for one in parts[place + 1 : place + 200]]
            rest = next((text for text in after if text and not text.startswith(" ")), "")
            if not rest.startswith(found[1]):
                yield "the error that a program gave below its usage is missing"


_PIN = re.compile(r"\s{0,4}([A-Za-z0-9][\w.-]{0,100})==\S{1,60}\s*$")


def _pins(parts: Sequence[Line]) -> Iterator[str]:
    """Look for a package that one listing names twice."""
    seen: set[str] = set()
    for line in parts:
        found = _PIN.match(line.text[:200]) if line.kind == "output" else None
        if found is None:
            seen.clear()
        elif (name := normal(found[1])) in seen:
            yield f"{name} is listed twice; what stood between the two listings is missing"
        else:
            seen.add(name)


_FROM = re.compile(r"Requirement already satisfied: .{1,400} \(from ([\w.-]{1,80})[^()]*\)")


def _requirements(parts: Sequence[Line]) -> Iterator[str]:
    """Look for what pip said of the package that asks for another."""
    told: set[str] = set()
    for line in parts:
        text = line.text[:600]
        if line.kind == "output" and "satisfied" not in text and "Collecting" not in text:
            continue
        asked = _FROM.match(text)
        if asked and normal(asked[1]) not in told:
            yield f"what pip said of {asked[1]} is missing"
        if named := re.match(
            r"\s*(?:Requirement already satisfied:|Collecting) ([\w.-]{1,80})", text
        ):
            told.add(normal(named[1]))


FORM: tuple[tuple[str, str], ...] = (
    ("PyTorch version", r"(?i)\s*(?:[-*] )?(?:py)?torch version\b"),
    ("OS", r"(?i)\s*(?:[-*] )?OS\b.{0,20}:"),
    ("How you installed PyTorch", r"\s*(?:[-*] )?How you installed PyTorch"),
    ("Python version", r"(?i)\s*(?:[-*] )?python version\b"),
    ("CUDA/cuDNN version", r"\s*(?:[-*] )?CUDA/cuDNN version"),
)
"""The questions of torch's form for reports, until collect_env took its place."""


def _report_form(parts: Sequence[Line]) -> list[str]:
    found = {name for name, key in FORM for line in parts if re.match(key, line.text[:200])}
    if not found & {"How you installed PyTorch", "CUDA/cuDNN version"}:
        return []
    return [name for name, _ in FORM if name not in found]
