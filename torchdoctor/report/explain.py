"""What is known of a finding, in its parts, and of a check; or of all of them, in rows."""

from __future__ import annotations

import difflib
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping

from torchdoctor.model import DoctorError
from torchdoctor.registry import Check
from torchdoctor.report import parts
from torchdoctor.values import dataclass

_ROLE = re.compile(r":[a-z]+:`~?(?:[\w.]+\.)?(\w+)`")
_LITERAL = re.compile(r"``(.+?)``")
_FAR_EAST = "\u2e80-\u9fff"
_BREAKS = re.compile(
    rf"\s*(?:[{_FAR_EAST}](?=[{_FAR_EAST}])|[^\s{_FAR_EAST}]+|[{_FAR_EAST}])[\u3001\u3002\uff00-\uff1f]*"
)
"""A word, or one character of a language without spaces, with the marks that stay with it."""
WIDTH = 100
Say = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Voice:
    """The language of a page; English by itself."""

    head: Say = str
    """Says heads and marks."""
    paragraph: Say = str
    """Says what stands under them, as far as that is translated."""


ENGLISH = Voice()


def explain(name: str, checks: Mapping[str, Check], voice: Voice = ENGLISH) -> str:
    """Return what is known of *name*: a finding, a check, or a family of checks.

    Raises :class:`~torchdoctor.model.DoctorError` with the nearest names when there is none.
    """
    if page := parts.page(name, checks.values()):
        texts = [_of_finding(page, voice)]
    elif name in checks:
        texts = [_of_check(checks[name])]
    else:
        texts = []
    if family := [check for check in checks.values() if check.family == name]:
        texts.append(_of_family(name, family))
    if not texts:
        raise DoctorError(_unknown(name, checks), kind="usage")
    return "\n".join(texts)


def listing(checks: Mapping[str, Check]) -> str:
    """Return every check by family: its name, its subject, the findings that it can make."""
    families = sorted({check.family for check in checks.values()})
    return "\n".join(
        _of_family(family, [check for check in checks.values() if check.family == family])
        for family in families
    )


def _of_finding(page: parts.Page, voice: Voice) -> str:
    check = page.maker
    first = f"{page.name}: a finding of the check {check.name} (family {check.family})"
    rows = [voice.head(first), ""]
    for part, head in parts.PARTS.items():
        for number, paragraph in enumerate(page.parts[part]):
            said = voice.paragraph(cleaned(paragraph))
            rows += [*_filled(said if number else f"{voice.head(f'{head}: ')}{said}"), ""]
    for head, code in ((parts.BAD, page.bad), (parts.GOOD, page.good)):
        rows += [voice.head(f"{head}:"), "", code, ""] if code else []
    rows += list(_rows(check, voice, page.also))
    return "\n".join(rows).rstrip("\n") + "\n"


def _rows(check: Check, voice: Voice, also: Iterable[str] = ()) -> Iterator[str]:
    """Yield what a check finds, reads and waits for, and who else finds it."""
    facts = [
        ("Finds: ", check.names),
        ("Found by, too: ", also),
        ("Reads: ", check.reads),
        ("Waits for: ", check.after),
    ]
    yield from (_hanging(voice.head(label), names) for label, names in facts if names)


def _filled(text: str) -> list[str]:
    """Return *text* as lines of at most :data:`WIDTH` cells."""
    if text.isascii():
        return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    lines, line, cells = [], "", 0
    for word in _BREAKS.findall(text):
        wide = sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in word)
        if cells + wide > WIDTH and line.strip():
            lines.append(line.rstrip())
            line, cells = word.lstrip(), wide
        else:
            line, cells = line + word, cells + wide
    return [*lines, line.rstrip()]


def _of_check(check: Check) -> str:
    return f"{check.name}: a check (family {check.family})\n\n{_about(check)}"


def _about(check: Check) -> str:
    text = cleaned(check.explains) or "It says nothing of itself."
    return "\n".join([text, "", *_rows(check, ENGLISH)]) + "\n"


def _of_family(name: str, checks: Iterable[Check]) -> str:
    rows = [name]
    for check in sorted(checks, key=lambda check: check.name):
        rows += [f"  {check.name}: {title(check)}", _hanging("    ", check.names)]
    return "\n".join(rows) + "\n"


def title(check: Check) -> str:
    """Return what *check* looks for, in one sentence."""
    return cleaned(check.explains).partition("\n\n")[0].replace("\n", " ")


def _hanging(label: str, names: Iterable[str]) -> str:
    return textwrap.fill(
        ", ".join(names),
        100,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def cleaned(docstring: str) -> str:
    """Return *docstring* as plain text: the names in it without their markup."""
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", docstring)).strip()


def _unknown(name: str, checks: Mapping[str, Check]) -> str:
    known = {
        *checks,
        *(finding for check in checks.values() for finding in check.names),
        *(check.family for check in checks.values()),
    }
    asked = name if len(name) <= 60 and name.isprintable() else ascii(name[:60])  # noqa: PLR2004
    near = difflib.get_close_matches(name[:100], sorted(known), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`torchdoctor list` shows all."
    return f"There is no finding, check or family called {asked}; {hint}"
