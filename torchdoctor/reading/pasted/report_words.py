"""The words that give our own report its form, in another language: read as the English ones.

They are taken from the catalogue that wrote them, so that both change together. What a report says
in its sentences stays as it is.
"""

from __future__ import annotations

import functools
import re

from torchdoctor import locale
from torchdoctor.resource import read_text

_FAR_EAST = re.compile("[\u3000-\u9fff\uff00-\uffef]")
_SPLIT = re.compile("(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])")
"""Where a line ended between two characters that have no space between them."""
_PAIRS = (("severity", ("error", "warning", "note")), ("sure", ("certain", "likely", "possible")))
_VERDICTS = ("healthy", "degraded", "broken", "unknown")
_BEGINS = (
    *("  at     ", "  cause  ", "  seen   ", "  then   ", "Note: ", "Not told: ", "Not told:"),
    *("Not read: ", "Clear: ", "Looked at: ", "More: ", "Do this", "Findings", "  - at: "),
    *("#### Do this\n", "#### Findings\n", "  - because of: ", "After this step"),
    *("After these steps", "What to do is in the report that was given."),
    *("No command is known that cures {names}.", "and {count} (--verbose shows all)"),
    *("- and {count} (--verbose shows all)", "Nothing was found that stands in the way{x1}"),
)
"""How lines of a report begin; what follows may be broken into several lines."""
_WHOLE = (
    "PyTorch works {where}: {torch}{accelerator}.",
    "Cannot tell whether PyTorch works {where}: {what_is_missing}.",
    "{n} checks: {parts}.",
)
_KINDS = ("{n} clear", "{n} with findings", "{n} unknown", "{n} waiting", "{n} crashed")
OTHERS = " And {x1} more."
"""What the first line ends with where there are several findings."""


def in_english(line: str) -> str:
    """Return *line* of a report with the words of its form in English."""
    if not _FAR_EAST.search(line[:400]) or len(line) > 1000:  # noqa: PLR2004 - no page is as wide
        return line
    line = _marks().sub(lambda m: f"{_english()[m[1]]} {m[2]} {_english()[m[3]]}", line)
    if head := _verdict().match(line):  # the first line of Markdown
        return f"{head[1]}{_english()[head[2]]}{head[3]}{in_english(line[head.end() :])}"
    margin = re.match(r" {0,12}", line)
    indent = margin.end() if margin else 0
    for at in {0, indent} if indent < 4 else {indent, 0, indent - 2}:  # noqa: PLR2004
        for begins, said in _beginnings():
            if line.startswith(begins, at):
                return f"{line[:at]}{said}{line[at + len(begins) :]}"
    for pattern, said in _sentences():
        if whole := pattern.match(line, indent):
            put = {name: _plain(value or "") for name, value in whole.groupdict().items()}
            return f"{line[:indent]}{said.format(**put)}{line[whole.end() :]}"
    return line


def joined(text: str) -> str:
    """Return *text*, put together of lines, without spaces where the language has none."""
    return _SPLIT.sub("", text) if _FAR_EAST.search(text) else text


@functools.cache
def others() -> re.Pattern[str]:
    """Return what finds at the end of a first line how many findings there are besides."""
    ways = [OTHERS, _said(OTHERS)]
    return re.compile(f"(?:{'|'.join(re.escape(w).replace(_HOLE, '[0-9]{1,6}') for w in ways)})$")


_HOLE = re.escape("{x1}")


@functools.cache
def _messages() -> dict[str, str]:
    return locale.catalogue(read_text("locale", f"{locale.CHINESE}.po"))


def _said(english: str) -> str:
    return _messages().get(english, english)


@functools.cache
def _english() -> dict[str, str]:
    """Return for each mark of a finding, and each verdict, the English word."""
    words = (*(word for _, some in _PAIRS for word in some), *_VERDICTS)
    return {**{_said(word): word for word in words}, **{word: word for word in words}}


@functools.cache
def _marks() -> re.Pattern[str]:
    """Return what finds the severity and the confidence at the end of a title."""
    severity, sure = (
        "|".join(re.escape(form) for word in some for form in (_said(word), word))
        for _, some in _PAIRS
    )
    return re.compile(rf"(?:(?<=  )|(?<=^)|(?<= ))({severity}) (\u00b7|-) ({sure})$")


@functools.cache
def _verdict() -> re.Pattern[str]:
    words = "|".join(map(re.escape, map(_said, _VERDICTS)))
    return re.compile(rf"(\s{{0,12}}(?:\*\*)?torchdoctor [0-9]\S{{0,40}}: )({words})(\.\**\s*)")


@functools.cache
def _beginnings() -> tuple[tuple[str, str], ...]:
    """Return how lines begin, in the other language and in English; the longest first."""
    pairs = []
    for message in _BEGINS:
        said, english = (re.split(r"\{|\n", text)[0] for text in (_said(message), message))
        # After the steps, what the sentence goes on with is of no matter.
        pairs.append((said, f"{english} " if english.startswith("After") else english))
    return tuple(sorted((p for p in pairs if p[0]), key=lambda pair: -len(pair[0])))


@functools.cache
def _sentences() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return patterns for whole lines with the English that they stand for."""
    return tuple((_pattern(_said(message)), message) for message in _WHOLE)


def _pattern(said: str) -> re.Pattern[str]:
    literal = re.split(r"\{(\w+)\}", said)
    parts = [
        f"(?P<{part}>.{{0,600}}?)" if at % 2 else re.escape(part) for at, part in enumerate(literal)
    ]
    return re.compile("".join(parts).removesuffix(re.escape("\u3002")) + "(?:\u3002|$)")


def _plain(value: str) -> str:
    """Return what fills a hole with the punctuation of English, and the words that are read."""
    value = value.replace("\uff08", " (").replace("\uff09", ")").replace("\uff0c", ", ")
    for kind in _KINDS:
        value = value.replace(_said(kind).format(n=""), kind.format(n=""))
    return {_said("here"): "here", _said("there"): "there"}.get(value, value)
