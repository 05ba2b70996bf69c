"""What a report says, in another language than English: see ``speech.py`` for how it is said.

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
from typing import TYPE_CHECKING

from torchdoctor.resource import read_text

if TYPE_CHECKING:
    from torchdoctor.locale.speech import Speaker

ENGLISH, CHINESE = "en", "zh_CN"
LANGUAGES = (ENGLISH, CHINESE)
ALIKE = {"zh": CHINESE, "zh_hans": CHINESE, "zh_cn": CHINESE, "zh_sg": CHINESE}
"""What stands for a language: names of locales in lower case."""
SAMPLES = {CHINESE: "请这样做。"}
_ENTRY = re.compile(r'^(msgid|msgstr) ("(?:[^"\\]|\\.)*"(?:\n"(?:[^"\\]|\\.)*")*)', re.MULTILINE)


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
    from torchdoctor.locale.speech import Speaker  # noqa: PLC0415 - English needs none of it

    if language == ENGLISH:
        return Speaker({}, {})
    ways = json.loads(read_text("locale", "templates.json"))["ways"]
    return Speaker(catalogue(read_text("locale", f"{language}.po")), ways)


class _Pages(dict[str, str]):
    """Paragraphs of explanations; what is not translated is said as it is."""

    def __missing__(self, text: str) -> str:
        return text


@functools.cache
def pages(language: str) -> Mapping[str, str]:
    """Return the paragraphs of explanations in *language*, by what they are in English."""
    return _Pages(catalogue(read_text("locale", f"explained_{language}.po")))


def catalogue(text: str) -> dict[str, str]:
    """Return the messages of a .po file with their translations; those without one are left out."""
    rows = [(m[1], "".join(map(json.loads, m[2].split("\n")))) for m in _ENTRY.finditer(text)]
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return {said: meant for (_, said), (_, meant) in pairs if said and meant}
