"""What happens to a listing on its way from a terminal into an issue."""

from __future__ import annotations

import html
import random
import textwrap
from collections.abc import Callable


def tabs(text: str) -> str:
    """Put one blank for each tab."""
    return text.replace("\t", " ")


def crlf(text: str) -> str:
    """End lines as Windows does."""
    return text.replace("\n", "\r\n")


def quoted(text: str) -> str:
    """Answer a mail."""
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def fenced(text: str) -> str:
    """Put it in a Markdown fence, as an issue has it."""
    return f"### Versions\n\n<details>\n\n```text\n{text}\n```\n\n</details>\n"


def coloured(text: str) -> str:
    """Leave a terminal's colours in it."""
    lines = text.split("\n")
    return "\n".join(f"\x1b[{31 + i % 6};1m{line}\x1b[0m" for i, line in enumerate(lines))


def escaped(text: str) -> str:
    """Copy a page's source."""
    return html.escape(text)


def cut(text: str) -> str:
    """Cut lines at 80 columns, as a terminal does."""
    lines = text.split("\n")
    return "\n".join(x[i : i + 80] for x in lines for i in range(0, max(len(x), 1), 80))


def wrapped(text: str) -> str:
    """Wrap lines between words at 80 columns, as a mail does."""
    return "\n".join("\n".join(textwrap.wrap(line, 80)) for line in text.split("\n"))


def indented(text: str) -> str:
    """Indent it by four blanks, as Markdown has code."""
    return textwrap.indent(text, "    ")


def shuffled(text: str, seed: int = 1) -> str:
    """Mix up the lines."""
    lines = text.split("\n")
    random.Random(seed).shuffle(lines)  # noqa: S311 - repeatable, not secret
    return "\n".join(lines)


def half(text: str, seed: int = 1) -> str:
    """Leave out every other line, by chance."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    return "\n".join(line for line in text.split("\n") if chance.random() < 0.5)


def in_a_log(text: str) -> str:
    """Put 3 MB of a training log before and after it."""
    log = "".join(
        f"2026-03-01 12:{i // 60 % 60:02}:{i % 60:02} step {i} loss {1 / (i + 1):.5f}\n"
        for i in range(70_000)
    )
    return f"{log}\n{text}\n\n{log}"


EXACT: dict[str, Callable[[str], str]] = {
    "tabs": tabs,
    "crlf": crlf,
    "quoted": quoted,
    "fenced": fenced,
    "coloured": coloured,
    "escaped": escaped,
}
"""After these, everything has to be read as before."""

WIDTHS: dict[str, Callable[[str], str]] = {"cut": cut, "wrapped": wrapped}
LOSSES: dict[str, Callable[[str], str]] = {"shuffled": shuffled, "half": half}
"""After these, less may be read, nothing else."""
