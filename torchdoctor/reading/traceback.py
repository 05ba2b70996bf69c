"""Error text in, symptoms and exceptions out. The one place that knows messages.

What messages there are is in ``tables/symptoms*.toml``; each row names its source. Text may be
anything (a log, a terminal's copy, megabytes of rubbish): the time taken is linear in its length,
and bounded. Logs of several ranks in one text are told apart by what stands before each line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, cast

from torchdoctor.facts import Symptom
from torchdoctor.reading import ranks
from torchdoctor.reading.ranks import RANK
from torchdoctor.tables import symptoms as table
from torchdoctor.values import dataclass

LONGEST = 512 * 1024
"""Characters of a text that are looked at; of a longer one, both ends."""
BEFORE, AFTER = 500, 800
"""Characters around a hint in which its message is looked for."""
MOST_SEARCHED = 24 * 1024
"""Characters searched for one row; of more, both ends."""
MOST_FOUND = 16
"""Matches of one row."""
LONGEST_LINE = 300
LONGEST_QUESTION, LINES_OF_QUESTION = 160, 2
"""Characters and lines of a text that may be a question in a few words, and no more than that."""
MOST_LINES = 20_000
MOST_RANKS = 4096
LONGEST_MESSAGE = 8 * 1024

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[mK]")


# ---- symptoms ---------------------------------------------------------------------------------


NO_VERSIONS: Mapping[str, Iterable[str]] = {}


def symptoms(
    text: str, source: str, versions: Mapping[str, Iterable[str]] = NO_VERSIONS
) -> tuple[Symptom, ...]:
    """Return the known messages in *text*, in the order they stand there, each once.

    *source* says where the text comes from and is kept in each of them. *versions* are those of
    "torch" and "nccl" that are at hand, as far as they are known; what NCCL logs of its own is
    added. A wording that none of them prints is not taken for theirs.
    """
    if not text.strip():  # most of a healthy machine's: the table is not even read for them
        return ()
    text = _ends(_COLOUR.sub("", text), LONGEST)
    here = {name: frozenset(known) for name, known in versions.items()}
    if logged := _NCCL.findall(text):
        here["nccl"] = here.get("nccl", frozenset()) | frozenset(logged)
    rows = [row for row in table.rows() if table.is_printed_by(row, here)] if here else table.rows()
    return _found(text, rows, source)


_NCCL = re.compile(r"\bNCCL version (\d{1,2}\.\d{1,3}\.\d{1,3})")


def told(
    text: str, source: str, versions: Mapping[str, Iterable[str]] = NO_VERSIONS
) -> tuple[Symptom, ...]:
    """Return the known messages in *text*, and what it asks about where it has none.

    A word is weak evidence: only a text of a few words, without anything that a program printed,
    is read as a question.
    """
    known = symptoms(text, source, versions)
    if len(known) <= 1 and all(s.name in table.told() for s in known) and _is_question(text):
        return (*known, *_found(text.casefold(), table.words(), source))
    return known


_PRINTED = re.compile(
    r"^[ \t]{0,4}[\[$] ?|^[ \t]{0,8}[\w.]{1,40} ?= ?[\w.]{1,60}\(|"
    r"(?:[Ww]arning|[Ee]rror|ERROR|INFO): ",
    re.MULTILINE,
)


def _is_question(text: str) -> bool:
    """Tell whether *text* is a few words that somebody typed, and nothing that was printed."""
    lines = [line for line in text.splitlines() if line.strip()]
    few = len(text.strip()) <= LONGEST_QUESTION and len(lines) <= LINES_OF_QUESTION
    return few and not _PRINTED.search(text) and not exceptions(text)


def _found(text: str, rows: Sequence[table.Row], source: str) -> tuple[Symptom, ...]:
    found: list[tuple[int, Symptom]] = []
    taken: dict[str, list[tuple[int, int]]] = {}
    labelled = ranks.labelled(text)
    for row in rows:
        for match in _matches(text, row):
            spans = taken.setdefault(str(row["name"]), [])
            if all(match.end() <= start or end <= match.start() for start, end in spans):
                spans.append(match.span())
                symptom = _symptom(row, match, source, labelled=labelled)
                found.append((match.start(), symptom))
    counted = {str(row["name"]) for row in rows if row.get("counted")}
    return _each_once((s for _, s in sorted(found, key=lambda item: item[0])), counted)


def _matches(text: str, row: table.Row) -> Iterator[re.Match[str]]:
    left = MOST_FOUND
    for start, end in _around(text, cast("list[str]", row["hints"])):
        for match in _compiled(str(row["regex"])).finditer(text, start, end):
            yield match
            left -= 1
            if not left:
                return


def _around(text: str, hints: Iterable[str]) -> list[tuple[int, int]]:
    """Return the stretches of *text* near any of *hints*, merged, at most MOST_SEARCHED long."""
    stretches: list[tuple[int, int]] = []
    for at in sorted(at for hint in hints for at in _places(text, hint)):
        start, end = max(0, at - BEFORE), min(len(text), at + AFTER)
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], end)
        else:
            stretches.append((start, end))
    return _shortened(stretches)


def _places(text: str, hint: str) -> Iterator[int]:
    at = text.find(hint)
    while at >= 0:
        yield at
        at = text.find(hint, at + len(hint))


def _shortened(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if sum(end - start for start, end in stretches) <= MOST_SEARCHED:
        return stretches
    head: list[tuple[int, int]] = []
    tail: list[tuple[int, int]] = []
    room = MOST_SEARCHED // 2
    for start, end in stretches:
        head.append((start, min(end, start + room)))
        room -= head[-1][1] - start
        if room <= 0:
            break
    room = MOST_SEARCHED // 2
    for start, end in reversed(stretches):
        tail.append((max(start, end - room, head[-1][1]), end))
        room -= end - tail[-1][0]
        if room <= 0 or tail[-1][0] <= head[-1][1]:
            break
    return head + tail[::-1]


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    """Compile *regex* when it is first needed: most texts need few of them."""
    return re.compile(regex, re.MULTILINE)


def _symptom(row: table.Row, match: re.Match[str], source: str, *, labelled: bool) -> Symptom:
    groups = {k.partition("__")[0]: v for k, v in match.groupdict().items() if v}
    # Logs and the repr of an exception double the backslashes of a path.
    values = {k: v.strip().replace("\\\\", "\\") for k, v in groups.items()}
    values.update(_words(row.get("set")))
    for key, kind in _words(row.get("convert")).items():
        if key in values:
            values[key] = CONVERSIONS[kind](values[key])
    if RANK not in values and (rank := ranks.of_line(_before(match), labelled=labelled)):
        values[RANK] = rank
    return Symptom(str(row["name"]), values, source, _line(match))


def _before(match: re.Match[str]) -> str:
    """Return the line of *match* up to where it begins."""
    start = match.string.rfind("\n", 0, match.start()) + 1
    return match.string[start : match.start() + 1]


def _words(table: object) -> dict[str, str]:
    return {str(k): str(v) for k, v in table.items()} if isinstance(table, Mapping) else {}


def _line(match: re.Match[str]) -> str:
    """Return the line or lines that hold the match, as one line."""
    text = match.string
    start = max(text.rfind("\n", 0, match.start()) + 1, match.start() - LONGEST_LINE // 2)
    end = text.find("\n", match.end())
    end = min(len(text) if end < 0 else end, match.end() + LONGEST_LINE // 2)
    return " ".join(text[start:end].split())[:LONGEST_LINE]


def _each_once(found: Iterable[Symptom], counted: Container[str]) -> tuple[Symptom, ...]:
    """Return *found* without those that say what an earlier one says.

    What several ranks say is said once, with all of them, in the order of the text: "3,0,1". How
    often those in *counted* are said is kept, where it is more than once.
    """
    seen: dict[tuple[str, tuple[tuple[str, str], ...]], Symptom] = {}
    times: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
    for symptom in found:
        rest = {name: value for name, value in symptom.values.items() if name != RANK}
        key = symptom.name, tuple(sorted(rest.items()))
        first = seen.setdefault(key, symptom)
        times[key] += 1
        more: dict[str, str] = {}
        if both := (*ranks.of(first), *ranks.of(symptom)):
            more[RANK] = ",".join(dict.fromkeys(both))
        if symptom.name in counted and times[key] > 1:
            more["times"] = str(times[key])
        if more:
            seen[key] = replace(first, values={**first.values, **more})
    return tuple(seen.values())


def cuda_version(number: str) -> str:
    """Return the CUDA version in the driver's own number: "12080" is "12.8"."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"


def capability(code: str) -> str:
    """Return the compute capability that an architecture is for: "sm_120" is "12.0"."""
    digits = code.removeprefix("sm_")
    return f"{digits[:-1]}.{digits[-1]}" if digits.isdigit() else digits


def dotted(numbers: str) -> str:
    """Return a version that was printed as a tuple: "9, 1, 0" is "9.1.0"."""
    return ".".join(part.strip() for part in numbers.split(","))


CONVERSIONS = {"cuda": cuda_version, "capability": capability, "tuple": dotted}
"""What ``convert`` in a row may name."""


# ---- exceptions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: int | None
    function: str = ""


@dataclass(frozen=True, slots=True)
class Exc:
    """One exception as a text shows it."""

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    """Outermost first."""
    led_to: Literal["cause", "context"] | None = None
    """How it is tied to the next one of its rank in the text, if it is."""
    rank: str = ""
    """The rank that printed it, where several print into one text."""


_PREFIX = re.compile(
    r"(?:(?:[>|]|>>>)[ \t]|\[rank ?\d{1,5}\]:[ \t]?|E[ \t]{3}"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]{5,15}Z?[ \t]{1,4}(?:\|?[ \t]?ERROR[ \t|:-]{1,4})?)"
)
_FRAME = re.compile(r'[ \t]*File "(.{1,500}?)", line (\d{1,9})(?:, in (.{1,200}))?')
_CELL = re.compile(r"[ \t]*File (.{1,500}?\.pyw?):(\d{1,9})(?:, in (\S{1,200}))?")
_LAST = re.compile(r"[ \t]{0,3}((?:[A-Za-z_]\w{0,99}\.){0,9}[A-Za-z_]\w{0,99})(?::(?: (.*))?)?$")
_BARE = re.compile(
    r"(?:^|(?<=[ \t]))((?:[a-z_]\w{0,99}\.){0,9}[A-Z]\w{0,99}?(?:Error|Exception|Interrupt))"
    r": (\S.*)"
)
_CAUSE = "The above exception was the direct cause of the following exception"
_CONTEXT = "During handling of the above exception, another exception occurred"
_START = "Traceback (most recent call last)"
_TORCH = re.compile(r"[\\/](?:torch[\\/]__init__|torch)\.py$")


def exceptions(text: str) -> tuple[Exc, ...]:
    """Return the exceptions that *text* shows, in the order they stand there.

    Where one led to the next, it says so; so the last is what the user saw, and those before it
    lead back to the cause. Prompts, quote marks and ranks before the lines are borne; of ranks
    whose lines are mixed, each is read by itself.
    """
    text = _ends(_COLOUR.sub("", text), LONGEST)
    labelled = ranks.labelled(text)
    readers: dict[str, _Reader] = {}
    places: list[tuple[str, int]] = []
    for line in text.splitlines()[:MOST_LINES]:
        rank, rest = ranks.split(line, labelled=labelled)
        if rank not in readers and len(readers) == MOST_RANKS:
            continue
        reader = readers.setdefault(rank, _Reader(rank))
        before = len(reader.found)
        reader.take(_without_prefix(rest))
        places += [(rank, at) for at in range(before, len(reader.found))]
    return tuple(readers[rank].found[at] for rank, at in places)


def torch_file(found: Iterable[Exc]) -> str | None:
    """Return the file of the torch that was being imported, where a traceback shows it."""
    files = [frame.file for exc in found for frame in exc.frames if _TORCH.search(frame.file)]
    return files[-1] if files else None


class _Reader:
    """Line by line through a text: inside a traceback, inside a message, or neither."""

    def __init__(self, rank: str) -> None:
        self.found: list[Exc] = []
        self._rank = rank
        self._frames: list[Frame] = []
        self._inside = False
        self._message_open = False

    def take(self, line: str) -> None:
        if _START in line:
            self._inside, self._message_open, self._frames = True, False, []
        elif _CAUSE in line or _CONTEXT in line:
            self._tie("cause" if _CAUSE in line else "context")
        elif frame := _FRAME.match(line) or _CELL.match(line):
            self._frames.append(Frame(frame[1], int(frame[2]), frame[3] or ""))
        elif self._inside:
            if self._frames and (last := _LAST.match(line)):
                self._add(last[1], last[2] or "")
        elif bare := _BARE.search(line[:2000]):
            self._add(bare[1], bare[2])
        elif self._message_open and line.strip() and not line.startswith(("$ ", ">>>", "(")):
            self._extend(line)
        else:
            self._message_open = False

    def _add(self, kind: str, message: str) -> None:
        frames = tuple(self._frames)
        self.found.append(Exc(kind, message[:LONGEST_MESSAGE], frames, rank=self._rank))
        self._inside, self._message_open, self._frames = False, True, []

    def _extend(self, line: str) -> None:
        longer = f"{self.found[-1].message}\n{line}"
        if len(longer) > LONGEST_MESSAGE:
            self._message_open = False
        else:
            self.found[-1] = replace(self.found[-1], message=longer)

    def _tie(self, link: Literal["cause", "context"]) -> None:
        self._message_open = False
        if self.found:
            self.found[-1] = replace(self.found[-1], led_to=link)


def _without_prefix(line: str) -> str:
    for _ in range(3):
        prefix = _PREFIX.match(line)
        if prefix is None:
            break
        line = line[prefix.end() :]
    return line


def _ends(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n[...]\n{text[-most // 2 :]}"
