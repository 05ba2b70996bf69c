"""Make the files of torchdoctor/locale anew: ``python -m tests.report.catalogue``.

``templates.json`` is what the code can say and what may fill its holes; the .po file keeps its
translations, gets an empty entry for each sentence that is new, and loses those that nobody says.
What is still to be translated is printed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.report import templates
from torchdoctor.locale import CHINESE, catalogue

FOLDER = Path(__file__).parents[2] / "torchdoctor/locale"
TEMPLATES = FOLDER / "templates.json"
PO = FOLDER / f"{CHINESE}.po"
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


def main() -> int:
    """Write both files, print what lacks a translation; return 1 when something does."""
    texts = wanted()
    translated = known()
    TEMPLATES.write_text(templates_text(), "utf-8", newline="\n")
    PO.write_text(po_text(translated, texts), "utf-8", newline="\n")
    lacking = [text for text in texts if text not in translated]
    sys.stdout.write("".join(f"{json.dumps(text, ensure_ascii=False)}\n" for text in lacking))
    return 1 if lacking else 0


if __name__ == "__main__":
    raise SystemExit(main())
