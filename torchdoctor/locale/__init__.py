"""What a report says, in another language than English.

Checks say English sentences. Here a sentence that was said is found among the templates that the
code has (``templates.json``, read from its syntax), what was put into it is taken out, and the
template of the other language (``zh_CN.po``) is filled with it. Names, commands and values stay
as they are; what has no translation stays English.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from torchdoctor.resource import read_text

ENGLISH, CHINESE = "en", "zh_CN"
LANGUAGES = (ENGLISH, CHINESE)
ALIKE = {"zh": CHINESE, "zh_hans": CHINESE, "zh_cn": CHINESE, "zh_sg": CHINESE}
"""What stands for a language: names of locales in lower case."""
SAMPLES = {CHINESE: "请这样做。"}
LONGEST = 4000
DEEPEST = 9
AND = " and "
PUT = {"; ": "\uff1b", ", ": "\uff0c", AND: "和"}
MARKS = {"; ": "\uff1b", ": ": "\uff1a", ", ": "\uff0c", ".": "。"}
"""Punctuation of Chinese, which is as wide as its letters."""

_HOLE = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_ENTRY = re.compile(r'^(msgid|msgstr) ("(?:[^"\\]|\\.)*"(?:\n"(?:[^"\\]|\\.)*")*)', re.MULTILINE)
_PROSE = re.compile(
    r"(?<![\w./\\-])(?:the|a|an|it|is|has|have|of|and|to|for|in|that|which|not|with|are|this|was|be|"
    r"from|by|on|its|no|or|than|as|does|do|nothing|could|clear|more|checks?|findings?|notes?|facts?|remarks?)(?![\w./\\(=-])"
)
"""Words that English prose is full of, and names and values are not."""
_WORDS = re.compile(r"(?<![\w./\\-])[A-Za-z][a-z]+(?![\w./\\(=-])")
WORTH_OF_A_WORD = 6
"""Letters of a template that make up for a word that it leaves in English."""


def chosen(asked: str | None, environ: Mapping[str, str]) -> str:
    """Return the language that was *asked* for, else that of the locale in *environ*.

    English where the locale's language is none of ours.
    """
    if asked:
        return _known(asked) or ENGLISH
    named = (environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return _known(next(filter(None, named), "")) or ENGLISH


def fits(language: str, encoding: str) -> bool:
    """Tell whether *encoding* has the characters of *language*."""
    try:
        SAMPLES.get(language, "").encode(encoding)
    except (LookupError, UnicodeError):
        return False
    return True


def _known(name: str) -> str | None:
    bare = re.split(r"[.@]", name.replace("-", "_"))[0]
    return ALIKE.get(bare.casefold()) or next((x for x in LANGUAGES if x == bare), None)


@functools.cache
def speaker(language: str) -> Speaker:
    """Return what says sentences in *language*."""
    if language == ENGLISH:
        return Speaker({}, {})
    ways = json.loads(read_text("locale", "templates.json"))["ways"]
    return Speaker(catalogue(read_text("locale", f"{language}.po")), ways)


def catalogue(text: str) -> dict[str, str]:
    """Return the messages of a .po file with their translations; those without one are left out."""
    rows = [(m[1], "".join(map(json.loads, m[2].split("\n")))) for m in _ENTRY.finditer(text)]
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return {said: meant for (_, said), (_, meant) in pairs if said and meant}


@dataclass(frozen=True, slots=True)
class _Template:
    """A message with holes, ready to be found in a text."""

    said: str
    meant: str
    weight: int
    """How many letters of it are always there."""
    anchor: str
    """The longest of its parts that are always there."""


class Speaker:
    """Says in another language what was said in English."""

    def __init__(
        self, messages: Mapping[str, str], ways: Mapping[str, Mapping[str, list[str]]]
    ) -> None:
        """Take *messages*, English to the other language, and what may fill their holes."""
        self._messages = messages
        self._ways = ways
        self._known: dict[str, str | None] = {}
        self._templates = sorted(map(_template, messages.items()), key=lambda t: -t.weight)
        frames = {said: _punctuated(said) for said in ways if said not in messages}
        self._frames = sorted(map(_template, frames.items()), key=lambda t: -len(t.said))

    def __bool__(self) -> bool:
        """Tell whether it says anything in another way."""
        return bool(self._messages)

    def say(self, text: str) -> str:
        """Return *text* in the other language, as far as it is known there."""
        if not self._messages or not text.strip() or len(text) > LONGEST:
            return text
        return self._said(text, 0) or text

    def _said(self, text: str, depth: int) -> str | None:
        """Return the translation of *text*; None where it is not known."""
        if depth > DEEPEST:
            return None
        if text not in self._known:
            self._known[text] = self._new(text, depth)
        return self._known[text]

    def _new(self, text: str, depth: int) -> str | None:
        if (exact := self._messages.get(_escaped(text))) is not None:
            return _plain(exact)
        if not _WORDS.search(text):  # names and values
            return None
        ways = (self._whole(text, depth), self._of_parts(text, depth))
        if said := min(filter(None, ways), key=_english, default=None):
            return said
        if text.endswith(".") and (said := self._said(text[:-1], depth + 1)):
            return f"{said}{MARKS['.']}"
        return None

    def _whole(self, text: str, depth: int) -> str | None:
        """Return the translation of *text* as one message, that which leaves the least English."""
        best: tuple[tuple[int, bool, int], str] | None = None
        for template in self._templates:
            if template.anchor not in text or "{" not in template.said:
                continue
            for strict in (True, False):
                if (said := self._found(template, text, strict=strict, depth=depth)) is not None:
                    sure = strict and template.said in self._ways
                    worth = (_english(said), not sure, -template.weight)
                    enough = sure or worth[0] * WORTH_OF_A_WORD <= template.weight
                    if enough and (best is None or worth < best[0]):
                        best = worth, said
                    break
            if best and best[0][:2] == (0, False):
                break
        return best[1] if best else self._framed(text, depth)

    def _framed(self, text: str, depth: int) -> str | None:
        """Return the translation of *text*, put together of messages only."""
        for frame in self._frames if depth == 0 else ():
            if frame.anchor in text:
                said = self._found(frame, text, strict=True, depth=depth)
                if said is not None and said != text and not _english(said):
                    return said
        return None

    def _found(self, template: _Template, text: str, *, strict: bool, depth: int) -> str | None:
        """Return what *template* makes of *text*; None where it is not what was said.

        With *strict*, only what is known to fill a hole may fill it.
        """
        shapes = self._shapes(template.said, 0) if strict else ()
        match = _pattern(template.said, shapes).fullmatch(text)
        if match is None:
            return None
        ways = self._ways.get(template.said, {})
        filled = {
            name: self._filled(value or "", ways.get(name, []), depth + 1)
            for name, value in match.groupdict().items()
        }
        return template.meant.format(**filled)

    def _shapes(self, said: str, depth: int) -> tuple[tuple[str, str], ...]:
        """Return for each hole of *said* whose fillings are known an expression for all of them."""
        ways = self._ways.get(said, {})
        if depth > 1:
            return ()
        return tuple(
            (name, "|".join(self._shape(way, depth + 1) for way in sorted(known, key=len)[::-1]))
            for name, known in ways.items()
            if known != [AND]
        )

    def _shape(self, said: str, depth: int) -> str:
        return _expression(said, self._shapes(said, depth), named=False)

    def _filled(self, value: str, ways: list[str], depth: int) -> str:
        """Return what stands in a hole, in the other language."""
        if not value or depth > DEEPEST:
            return value
        if ways == [AND] and AND in value:
            return "和".join(self._filled(part, [], depth + 1) for part in value.split(AND))
        for way in sorted(ways, key=len, reverse=True):
            if way == value or "{" in way:
                known = _template((way, self._messages.get(way, _punctuated(way))))
                if (found := self._found(known, value, strict=True, depth=depth)) is not None:
                    return min(found, self._said(value, depth + 1) or found, key=_english)
        return self._said(value, depth + 1) or value

    def _of_parts(self, text: str, depth: int) -> str | None:
        """Return the translation of a list, each part of which is a message."""
        for mark, put in PUT.items():
            parts = text.split(mark)
            if len(parts) > 1 and depth <= DEEPEST:
                said = [
                    self._part(part, mark if at else "", depth) for at, part in enumerate(parts)
                ]
                if any(said) and (mark == "; " or all(said)):
                    return "".join(
                        new if new is not None else f"{put if at else ''}{parts[at]}"
                        for at, new in enumerate(said)
                    )
        return None

    def _part(self, part: str, mark: str, depth: int) -> str | None:
        """Return the translation of a *part* of a list, with the *mark* before it."""
        if mark and (said := self._said(f"{mark}{part}", depth + 1)):
            return said
        said = self._said(part, depth + 1)
        return None if said is None else f"{PUT.get(mark, '')}{said}"


def _english(text: str) -> int:
    """Return how many words of *text* are still English prose."""
    return len(_PROSE.findall(text))


def _template(pair: tuple[str, str]) -> _Template:
    parts = _literals(pair[0])
    letters = sum(c.isalpha() for part in parts for c in part)
    return _Template(pair[0], pair[1], letters, max(parts, key=len))


def _literals(said: str) -> list[str]:
    """Return the parts of *said* between its holes."""
    bare = said.replace("{{", "\0").replace("}}", "\1")
    return [part.replace("\0", "{").replace("\1", "}") for part in re.split(r"\{\w+\}", bare)]


@functools.lru_cache(4096)
def _pattern(said: str, shapes: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    return re.compile(_expression(said, shapes, named=True), re.DOTALL)


def _expression(said: str, shapes: tuple[tuple[str, str], ...], *, named: bool) -> str:
    """Return the regular expression for *said*, with *shapes* in the holes that have one."""
    known = dict(shapes)
    made, at = [], 0
    for hole in _HOLE.finditer(said):
        made.append(re.escape(said[at : hole.start()]))
        at = hole.end()
        name = hole[1]
        if name is None:
            made.append(re.escape(hole[0][0]))
        else:
            start = f"?P<{name}>" if named else "?:"
            made.append(f"({start}{known.get(name, '.*?')})")
    return "".join([*made, re.escape(said[at:])])


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _plain(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def _punctuated(said: str) -> str:
    """Return a message of which nothing is words, with the marks of Chinese around its holes."""
    if re.fullmatch(r" \(\{\w+\}\)", said):
        return f"\uff08{said[2:-1]}\uff09"
    for mark, put in MARKS.items():
        if mark != ".":
            said = said.replace(mark, put)
    return f"{said[:-1]}{MARKS['.']}" if said.endswith(".") else said
