"""Say in another language what was said in English: the template is found, and filled anew."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

LONGEST = 4000
DEEPEST = 9
LONG = 80
"""Characters of a text that is more than a phrase."""
MOST_PARTS = 250
"""So many parts of one text are looked for: what nobody knows would be taken apart for seconds."""
SURE = 3
"""How deep in a sentence a part may stand for what is said of it there to hold everywhere."""
AND = " and "
ANY = "{any}"
"""Among what may fill a hole: and what else, nobody knows."""
PUT = {"; ": "\uff1b", ", ": "\uff0c", AND: "和"}
MARKS = {"; ": "\uff1b", ": ": "\uff1a", ", ": "\uff0c", ".": "。"}
"""Punctuation of Chinese, which is as wide as its letters."""

VERBS = {
    **dict.fromkeys(("is", "are", "was", "were", "does", "do"), ""),
    **dict.fromkeys(("has", "have"), "\u6709"),
}
"""Verbs that agree with what is before them; a hole that has the name of one says nothing here."""

_HOLE = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_PROSE = re.compile(
    r"(?<![A-Za-z0-9_./\\-])(?:the|a|an|it|is|has|have|of|and|to|for|in|that|which|not|with|are|this|was|be|"
    r"from|by|on|its|no|or|than|as|does|do|nothing|could|clear|more|checks?|findings?|notes?|facts?|remarks?)"
    r"(?![A-Za-z0-9_/\\(=-]|\.\w)"
)
"""Words that English prose is full of, and names and values are not."""
_WORDS = re.compile(r"(?<![\w./\\-])[A-Za-z][a-z]+(?![\w/\\(=-]|\.\w)")
_BRACKETED = re.compile(r"([^()]+) \(([^()]+)\)", re.DOTALL)
_LABELLED = re.compile(r"(\S{1,200}): (.+)", re.DOTALL)
_QUOTED = re.compile(
    r"'[^']*'|\"[^\"]*\"|`[^`]*`|(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt)\b(?:: .*)?",
    re.DOTALL,
)
"""What somebody else said: in quotation marks, or with the name of an exception before it."""
_SEVERAL = re.compile(r"[;.] ")
"""Between two sentences."""
WORTH_OF_A_WORD = 6
"""Letters of a template that make up for a word that it leaves in English."""


@dataclass(frozen=True, slots=True)
class _Template:
    """A message with holes, ready to be found in a text."""

    said: str
    meant: str
    weight: int
    """How many letters of it are always there."""
    anchor: str
    """The longest of its parts that are always there."""
    prose: int
    """How many words of its own only prose has."""

    @property
    def is_short(self) -> bool:
        """Tell whether it has so few letters that many a text is like it."""
        return self.weight <= WORTH_OF_A_WORD

    def is_worth(self, english: int, more: int) -> bool:
        """Tell whether so many *english* words may be left in what it makes of a text.

        *more* letters were those that it had to be.
        """
        return english * WORTH_OF_A_WORD <= self.weight + more or (
            self.weight > WORTH_OF_A_WORD and self.prose > 1
        )


class Speaker:
    """Says in another language what was said in English."""

    def __init__(
        self, messages: Mapping[str, str], ways: Mapping[str, Mapping[str, list[str]]]
    ) -> None:
        """Take *messages*, English to the other language, and what may fill their holes."""
        self._messages = messages
        self._ways = ways
        self._known: dict[str, str | None] = {}
        self._parts_left = MOST_PARTS
        self._shaped: dict[str, tuple[tuple[str, str], ...]] = {}
        holed = (pair for pair in messages.items() if _HOLE.search(pair[0]))
        self._templates = sorted(map(_template, holed), key=lambda t: -t.weight)
        frames = {said: _punctuated(said) for said in ways if said not in messages}
        self._frames = sorted(map(_template, frames.items()), key=lambda t: -len(t.said))

    def __bool__(self) -> bool:
        """Tell whether it says anything in another way."""
        return bool(self._messages)

    def say(self, text: str) -> str:
        """Return *text* in the other language, as far as it is known there."""
        if not self._messages or not text.strip() or len(text) > LONGEST:
            return text
        self._parts_left = MOST_PARTS
        return self._said(text, 0) or text

    def _said(self, text: str, depth: int) -> str | None:
        """Return the translation of *text*; None where it is not known."""
        if depth > DEEPEST:
            return None
        if text in self._known:
            return self._known[text]
        if self._parts_left <= 0:
            return None
        self._parts_left -= 1
        said = self._new(text, depth)
        if depth == 0 or (depth <= SURE and self._parts_left > 0):
            self._known[text] = said
        return said

    def _new(self, text: str, depth: int) -> str | None:
        if (exact := self._messages.get(_escaped(text))) is not None:
            return _plain(exact)
        if not _WORDS.search(text) or _QUOTED.fullmatch(text):  # names, values, others' words
            return None
        best: str | None = None
        for way in (
            *(self._plainly, self._whole, self._ended, self._begun),
            *(self._labelled, self._of_parts, self._bracketed),
        ):
            if depth == 0:
                self._parts_left = MOST_PARTS
            said = way(text, depth)
            if said and (best is None or _english(said) < _english(best)):
                best = said
            if best and not _english(best):
                break
        return best

    def _plainly(self, text: str, depth: int) -> str | None:
        """Return the translation of *text* as one message with names, values and messages in it.

        A message may be a part that begins or ends a sentence here.
        """
        bare, end = (text[:-1], MARKS["."]) if text.endswith(".") else (text, "")
        forms = [(text, "")] if not end else [(text, ""), (bare, end)]
        forms += [(f"{one[0].lower()}{one[1:]}", e) for one, e in forms if one[:1].isupper()]
        for form, mark in forms:
            if (exact := self._messages.get(_escaped(form))) is not None:
                return f"{_plain(exact)}{mark}"
        for form, mark in forms if depth <= 1 else ():
            if (said := self._of_one(form)) is not None:
                return f"{said}{mark}"
        return None

    def _of_one(self, text: str) -> str | None:
        """Return *text* as one message whose holes hold names, values and whole messages."""
        for template in self._templates:
            if template.anchor not in text:
                continue
            for shapes in (self._shapes(template.said, 0), ()):
                match = _pattern(template.said, shapes).fullmatch(text)
                values = match.groupdict().items() if match else ()
                filled = {name: self._plain_value(value or "") for name, value in values}
                if match and None not in filled.values():
                    return template.meant.format(**filled)
        return None

    def _plain_value(self, value: str) -> str | None:
        """Return what a hole holds in the other language; None where it has to be taken apart."""
        if (known := self._messages.get(_escaped(value))) is not None:
            return _plain(known)
        return None if _WORDS.search(value) else value

    def _labelled(self, text: str, depth: int) -> str | None:
        """Return the translation of *text* that has a name and a colon before it."""
        match = _LABELLED.fullmatch(text)
        said = self._said(match[2], depth + 1) if match else None
        return f"{match[1]}{MARKS[': ']}{said}" if match and said else None

    def _bracketed(self, text: str, depth: int) -> str | None:
        """Return the translation of *text* with something in brackets behind it."""
        match = _BRACKETED.fullmatch(text)
        if match is None:
            return None
        before, within = (self._said(part, depth + 1) for part in match.groups())
        if not (before or within):
            return None
        return f"{before or match[1]}\uff08{within or match[2]}\uff09"

    def _ended(self, text: str, depth: int) -> str | None:
        """Return the translation of *text* as that of a part, which ends a sentence here."""
        said = self._said(text[:-1], depth + 1) if text.endswith(".") else None
        return f"{said}{MARKS['.']}" if said else None

    def _begun(self, text: str, depth: int) -> str | None:
        """Return the translation of *text* as that of a part, which begins a sentence here."""
        lower = f"{text[0].lower()}{text[1:]}"
        return self._said(lower, depth + 1) if lower != text else None

    def _whole(self, text: str, depth: int) -> str | None:
        """Return the translation of *text* as one message, that which leaves the least English."""
        best: tuple[tuple[int, bool, int], str] | None = None
        for template in self._templates:
            if template.anchor not in text:
                continue
            if depth and template.is_short and template.said not in self._ways and _is_long(text):
                continue
            for strict in (True, False):
                if (found := self._read(template, text, strict=strict, depth=depth)) is not None:
                    said, more = found
                    letters = template.weight + more
                    sure = strict and letters > WORTH_OF_A_WORD and self._is_closed(template.said)
                    worth = (_english(said), not sure, -template.weight)
                    enough = sure or template.is_worth(worth[0], more)
                    if enough and (best is None or worth < best[0]):
                        best = worth, said
                    break
            if best and best[0][:2] == (0, False):
                break
        if best is None or -best[0][2] <= WORTH_OF_A_WORD:
            return self._framed(text, depth) or (best[1] if best else None)
        return best[1]

    def _is_closed(self, said: str) -> bool:
        """Tell whether it is known what may fill each of the holes of *said* that may be prose."""
        ways = self._ways.get(said, {})
        return bool(ways) and not any(ANY in known for known in ways.values())

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
        found = self._read(template, text, strict=strict, depth=depth)
        return found[0] if found else None

    def _read(
        self, template: _Template, text: str, *, strict: bool, depth: int
    ) -> tuple[str, int] | None:
        """Return the same, with the letters of what fills holes and was known to."""
        shapes = self._shapes(template.said, 0) if strict else ()
        match = _pattern(template.said, shapes).fullmatch(text)
        if match is None:
            return None
        ways = self._ways.get(template.said, {})
        values = {name: value or "" for name, value in match.groupdict().items()}
        closed = {name for name, _ in shapes if ANY not in ways[name]}
        known = (v for name, v in values.items() if name in closed or v in self._messages)
        filled = {
            name: ""
            if name in VERBS and value in VERBS
            else self._filled(value, ways.get(name, []), depth + 1)
            for name, value in values.items()
        }
        return template.meant.format(**filled), sum(c.isalpha() for one in known for c in one)

    def _shapes(self, said: str, depth: int) -> tuple[tuple[str, str], ...]:
        """Return for each hole of *said* whose fillings are known an expression for all of them."""
        if depth > 1 or said not in self._ways:
            return ()
        if depth == 0 and said in self._shaped:
            return self._shaped[said]
        shapes = tuple(
            (name, "|".join(self._shape(way, depth + 1) for way in sorted(known, key=len)[::-1]))
            for name, known in self._ways[said].items()
            if known != [AND]
        )
        if depth == 0:
            self._shaped[said] = shapes
        return shapes

    def _shape(self, said: str, depth: int) -> str:
        return _expression(said, self._shapes(said, depth), named=False)

    def _filled(self, value: str, ways: list[str], depth: int) -> str:
        """Return what stands in a hole, in the other language."""
        if not value or depth > DEEPEST:
            return value
        if value in VERBS and value in ways:
            return VERBS[value]
        if ways == [AND] and AND in value:
            return "和".join(self._filled(part, [], depth + 1) for part in value.split(AND))
        known = [way for way in ways if way == value or ("{" in way and way != ANY)]
        found = (self._way(way, value, depth, sure=ANY not in ways) for way in known)
        said = self._said(value, depth + 1)
        return min(filter(None, (*found, said)), key=_english, default=value)

    def _way(self, way: str, value: str, depth: int, *, sure: bool) -> str | None:
        """Return what *value* is in the other language if it was made by *way*."""
        template = _template((way, self._messages.get(way, _punctuated(way))))
        read = self._read(template, value, strict=True, depth=depth)
        if read is None:
            return None
        found, more = read
        return found if sure or template.is_worth(_english(found), more) else None

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


def _is_long(text: str) -> bool:
    """Tell whether *text* is more than a phrase."""
    return len(text) > LONG or bool(_SEVERAL.search(text))


def _english(text: str) -> int:
    """Return how many words of *text* are still English prose."""
    return len(_PROSE.findall(text))


def _template(pair: tuple[str, str]) -> _Template:
    parts = _literals(pair[0])
    letters = sum(c.isalpha() for part in parts for c in part)
    prose = sum(map(_english, parts))
    return _Template(pair[0], pair[1], letters, max(parts, key=len), prose)


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
