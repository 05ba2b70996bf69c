"""The README as a shell, a reader and a link checker see it: its blocks, commands and anchors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")
SHELLS = ("sh", "powershell")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"""(?:'[^']*'|"[^"]*"|\S#|[^#])*""")
"""What a shell takes of a line: all before a comment."""
_PROMPT = "$ "
_PROGRAMS = ("torchdoctor", "python", "python3", "pip", "pytest", ".ci/run", ".ci/pyz")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences."""

    language: str
    text: str


def blocks(text: str = TEXT) -> list[Block]:
    """Return the blocks of code of *text*, in their order."""
    return [Block(*found) for found in _FENCE.findall(text)]


def prose(text: str = TEXT) -> str:
    """Return *text* without its blocks of code."""
    return _FENCE.sub("", text)


def commands(text: str = TEXT) -> list[str]:
    """Return every command of the blocks of *text*, each once, without the comment beside it.

    Those of a shell's block are its lines, joined where one ends with a backslash; those of a
    sample are what stands after the prompt.
    """
    found: list[str] = []
    for block in blocks(text):
        lines = block.text.replace("\\\n", " ").splitlines()
        if block.language in SHELLS:
            found += [" ".join(_command(line).split()) for line in lines if _command(line)]
        elif block.language == "text":
            found += [line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT)]
    return list(dict.fromkeys(found))


def _command(line: str) -> str:
    match = _COMMAND.match(line)
    return match[0].strip() if match else ""


def mentioned(text: str = TEXT) -> list[str]:
    """Return the commands that stand within sentences."""
    spans = re.findall(r"`([^`\n]+)`", prose(text))
    return [span for span in spans if " " in span and span.split()[0] in _PROGRAMS]


def samples(text: str = TEXT) -> dict[str, str]:
    """Return what is shown to be printed, by the command that prints it."""
    shown = [block.text for block in blocks(text) if block.text.startswith(_PROMPT)]
    pairs = [one.partition("\n") for one in shown]
    return {first.removeprefix(_PROMPT): rest for first, _, rest in pairs}


def links(text: str = TEXT) -> list[str]:
    """Return where the links of *text* lead."""
    return re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", prose(text))


def anchors(text: str = TEXT) -> set[str]:
    """Return the anchors that the heads of *text* have where Markdown is shown."""
    heads = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
