"""What popular articles say of training on several processes, what is so, and where it is found.

The claims are data (``tables/advice.toml``). ``python -m torchdoctor.training.advice`` writes the
table of them beside this file, ADVICE.md, which a test compares.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchdoctor.registry import Check
from torchdoctor.tables import load

NAME = "training-advice"
WIDTH = 100
"""Of what explain prints, as of all that it prints."""
MARKS = {"true": "so", "nuance": "so, if", "false": "not so", "opinion": "opinion"}
PLACES = {
    "lint": "the rule {} of torchdoctor lint",
    "finding": "the finding {}",
    "check": "{}",
    "proof": "the proof {} of train-check",
    "harness": "{} of the harness",
    "sanitize": "torchdoctor.training.sanitize",
    "fixture": "the fixture assert_sharded",
    "explain": "torchdoctor explain training-advice",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of an article."""

    number: int
    said: str
    truth: str
    so: str
    """What is so."""
    where: Sequence[str]
    """Where the program takes it up: kind:name."""


def claims() -> list[Claim]:
    """Return all claims, in their order."""
    return [Claim(**row) for row in load("advice")["claim"]]


def articles() -> dict[int, str]:
    """Return what each article is, by the number of its first claim."""
    return {int(number): what for number, what in load("advice")["articles"].items()}


def place(where: str) -> str:
    """Return *where* in words."""
    kind, _, name = where.partition(":")
    return PLACES[kind].format(f"`{name.partition(':')[0]}`")


def as_check() -> Check:
    """Return what ``explain`` prints: the claims that are not simply so, and why."""
    about = (
        "What popular articles on training with several processes say, and is not so, or only if."
        "\n\n" + "\n\n".join(_paragraphs())
    )
    return Check(NAME, "training", about, (), frozenset(), (), (), lambda: iter(()))


def _paragraphs() -> Iterator[str]:
    for claim in claims():
        if claim.truth != "true":
            mark = MARKS[claim.truth]
            said = f"{claim.number}. ({mark}) {claim.said} {claim.so}"
            yield textwrap.fill(said, WIDTH, break_long_words=False, break_on_hyphens=False)


def markdown() -> str:
    """Return all claims as a page, with a table for each article."""
    first = articles()
    rows = [
        "# Training advice, claim by claim",
        "",
        (
            "Generated from `torchdoctor/tables/advice.toml` by "
            "`python -m torchdoctor.training.advice`."
        ),
    ]
    for claim in claims():
        if claim.number in first:
            rows += ["", f"## From {first[claim.number]}", ""]
            rows += ["| # | Said | Truth | What is so | Where |", "| --- | --- | --- | --- | --- |"]
        places = ", ".join(dict.fromkeys(map(place, claim.where)))
        cells = (str(claim.number), claim.said, MARKS[claim.truth], claim.so, places)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*rows, ""])


def main() -> int:
    """Write the page beside this file."""
    Path(__file__).with_name("ADVICE.md").write_text(markdown(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
