"""Make the files of torchdoctor/locale anew: ``python -m tests.report.catalogue``.

``templates.json`` is what the code can say and what may fill its holes; the .po file keeps its
translations, gets an empty entry for each sentence that is new, and loses those that nobody says.
What is still to be translated is printed. The .po file of explanations has entries by paragraph,
not for all of them; it loses those that no page has any more, with ``--pages NAME ...`` it gets
empty ones for the pages named. What is known and never said (``not_said.txt``) loses what the code
no longer has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.report import templates
from torchdoctor.commands.known import known as explained
from torchdoctor.locale import CHINESE, catalogue
from torchdoctor.report.explain import cleaned
from torchdoctor.report.parts import PARTS, page

FOLDER = Path(__file__).parents[2] / "torchdoctor/locale"
TEMPLATES = FOLDER / "templates.json"
PO = FOLDER / f"{CHINESE}.po"
PAGES = FOLDER / f"explained_{CHINESE}.po"
WORDS = Path(__file__).with_name("words.txt")
"""Words of reports that the syntax does not show to be said: labels, marks, counts."""
HEADER = (
    'msgid ""\nmsgstr ""\n"Language: zh_CN\\n"\n"MIME-Version: 1.0\\n"\n'
    '"Content-Type: text/plain; charset=UTF-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
)


def wanted() -> list[str]:
    """Return every text that has to have a translation, in order."""
    words = [json.loads(line) for line in WORDS.read_text("utf-8").splitlines() if line]
    return sorted({*templates.every(), *words})


def ways() -> dict[str, dict[str, list[str]]]:
    """Return for each template what may fill its holes, where that is known."""
    found: dict[str, dict[str, list[str]]] = {}
    todo = list(templates.all_of_them())
    while todo:
        one = todo.pop()
        if one.ways and one.text not in found:
            found[one.text] = {
                name: sorted({way.text for way in known}) for name, known in one.ways
            }
            todo += [way for _, known in one.ways for way in known]
    return dict(sorted(found.items()))


def said_by() -> dict[str, list[str]]:
    """Return by check the sentences of its module."""
    return {
        path.stem.replace("_", "-"): sorted({t.text for t in templates.said_in(path) if t.is_prose})
        for path in sorted((templates.ROOT / "checks").glob("[a-z]*.py"))
    }


def templates_text() -> str:
    """Return the text of templates.json."""
    document = {
        "schema": 1,
        "source": "the syntax of the code",
        "ways": ways(),
        "said_by": said_by(),
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def po_text(known: dict[str, str], texts: list[str]) -> str:
    """Return the text of the .po file for *texts*, with the translations that are *known*."""
    entries = [
        f"msgid {json.dumps(text, ensure_ascii=False)}\n"
        f"msgstr {json.dumps(known.get(text, ''), ensure_ascii=False)}\n"
        for text in texts
    ]
    return "\n".join([HEADER, *entries])


def known() -> dict[str, str]:
    """Return the translations that are there."""
    return catalogue(PO.read_text("utf-8"))


def paragraphs(*names: str) -> list[str]:
    """Return the paragraphs of the pages of the findings *names*, of all of them without.

    Sources are never translated.
    """
    checks = explained()
    every = sorted({name for check in checks.values() for name in check.names})
    found: dict[str, None] = {}
    for name in names or every:
        one = page(name, checks.values())
        assert one is not None, name
        told = (p for part in PARTS if part != "sources" for p in one.parts[part])
        found |= dict.fromkeys(map(cleaned, told))
    return list(found)


def known_pages() -> dict[str, str]:
    """Return the paragraphs that are translated."""
    return catalogue(PAGES.read_text("utf-8")) if PAGES.exists() else {}


def pages_text(translated: dict[str, str], more: list[str]) -> str:
    """Return the text of the .po file of explanations, with empty entries for *more*."""
    there = paragraphs()
    kept = [text for text in there if text in translated or text in more]
    return po_text(translated, kept)


def main() -> int:
    """Write the files, print what lacks a translation; return 1 when something does."""
    names = sys.argv[2:] if sys.argv[1:2] == ["--pages"] else []
    more = paragraphs(*names) if names else []
    PAGES.write_text(pages_text(known_pages(), more), "utf-8", newline="\n")
    kept = sorted(templates.quoted() & templates.texts())
    rows = "".join(f"{json.dumps(text, ensure_ascii=False)}\n" for text in kept)
    templates.QUOTED.write_text(rows, "utf-8", newline="\n")
    texts = wanted()
    translated = known()
    TEMPLATES.write_text(templates_text(), "utf-8", newline="\n")
    PO.write_text(po_text(translated, texts), "utf-8", newline="\n")
    lacking = [text for text in texts if text not in translated]
    lacking += [text for text in more if text not in known_pages()]
    sys.stdout.write("".join(f"{json.dumps(text, ensure_ascii=False)}\n" for text in lacking))
    return 1 if lacking else 0


if __name__ == "__main__":
    raise SystemExit(main())
