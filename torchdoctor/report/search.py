"""Find what the checks explain by words, English or Chinese: ``torchdoctor explain --search``."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence

from torchdoctor import locale
from torchdoctor.model import DoctorError
from torchdoctor.registry import Check
from torchdoctor.report.explain import cleaned, title
from torchdoctor.resource import read_text
from torchdoctor.tables import load

MOST = 12
"""How many findings are shown."""
IN_NAME, IN_TITLE, IN_WORDS, IN_TEXT = 8, 4, 4, 1
_WORD = re.compile(r"[a-z0-9_.+]+|[\u4e00-\u9fff]+")
_STOP = frozenset(("a", "an", "and", "at", "for", "from", "in", "is", "it", "no", "of", "on", "or"))


def search(asked: Sequence[str], checks: Mapping[str, Check]) -> str:
    """Return the findings that *asked* is about, the likeliest first, one a line.

    Raises:
        DoctorError: there is none; with words that are near.

    """
    words = [w for w in _WORD.findall(" ".join(asked).casefold()) if w not in _STOP]
    texts = _texts(checks)
    found = {}
    for name, parts in texts.items():
        worth = [max((w for text, w in parts if word in text), default=0) for word in words]
        if any(worth):
            found[name] = (sum(map(bool, worth)), sum(worth))
    most = max((hits for hits, _ in found.values()), default=0)
    # All the words, or as many as anything has.
    best = [name for name in found if found[name][0] == most]
    if not best:
        raise DoctorError(_none(asked, words, texts), kind="usage")
    best.sort(key=lambda name: (-found[name][1], name))
    rows = [f"{name}: {_about(name, checks)}" for name in best[:MOST]]
    if len(best) > MOST:
        rows.append(f"and {len(best) - MOST} more")
    return "\n".join([*rows, "", f"More: torchdoctor explain {best[0]}"]) + "\n"


def _texts(checks: Mapping[str, Check]) -> dict[str, list[tuple[str, int]]]:
    """Return for each finding the texts in which it is looked for, with what a hit is worth."""
    told = said(locale.CHINESE)
    asked = asked_by()
    texts: dict[str, list[tuple[str, int]]] = {}
    for check in checks.values():
        for name in check.names:
            parts = texts.setdefault(name, [])
            parts += [(name.replace("-", " "), IN_NAME), (name, IN_NAME)]
            parts += [(check.name.replace("-", " "), IN_TITLE)]
            parts += [(title(check).casefold(), IN_TITLE)]
            parts += [(cleaned(check.explains).casefold(), IN_TEXT)]
            parts += [(text.casefold(), IN_TEXT) for text in told.get(check.name, ())]
            parts += [(word, IN_WORDS) for word in asked.get(name, ())]
    return texts


def said(language: str) -> dict[str, list[str]]:
    """Return by check what it may say, in English and in *language*."""
    by_check = json.loads(read_text("locale", "templates.json"))["said_by"]
    messages = locale.catalogue(read_text("locale", f"{language}.po"))
    return {
        name: [text for english in texts for text in (english, messages.get(english, ""))]
        for name, texts in by_check.items()
    }


def asked_by() -> dict[str, list[str]]:
    """Return by finding the words that people ask about it with, in any language."""
    found: dict[str, list[str]] = {}
    for topic in load("symptoms_words")["topic"]:
        for name, _ in topic["causes"]:
            found.setdefault(name, []).extend(topic["words"])
    return found


def _about(name: str, checks: Mapping[str, Check]) -> str:
    makers = [check for check in checks.values() if name in check.names]
    check = next((c for c in makers if not c.echoes), makers[0])
    return f"{title(check)} (check {check.name})"


def _none(
    asked: Sequence[str], words: Iterable[str], texts: Mapping[str, list[tuple[str, int]]]
) -> str:
    known = {w for parts in texts.values() for text, _ in parts for w in _WORD.findall(text)}
    near = [n for word in words for n in difflib.get_close_matches(word[:60], sorted(known), n=2)]
    hint = (
        f"did you mean {' or '.join(dict.fromkeys(near))}?"
        if near
        else "`torchdoctor list` shows all."
    )
    said_so = ascii(" ".join(asked)[:60])
    return f"Nothing is known of {said_so}; {hint}"
