"""The pages of the docs, as Markdown: one for each finding, and those that lead to them.

Nothing is written here that stands elsewhere: what a page says is what ``torchdoctor explain``
prints, what an option does is what ``--help`` says, and the pages of ``.github/docs`` and the
training advice are taken as they are.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from torchdoctor import cli
from torchdoctor.commands.known import known
from torchdoctor.lint.rule import FAMILIES as FAMILIES_OF_RULES
from torchdoctor.lint.rule import all_rules
from torchdoctor.registry import Check, all_checks
from torchdoctor.report import explain, parts
from torchdoctor.training import advice

ROOT = Path(__file__).parents[2]
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")
_PIECE = re.compile(r"`[^`]+`|https?://[^\s,;)]+|[^`\s]+|\s+|`")
WIDTH = 100
LANGUAGES = {".yml": "yaml", ".yaml": "yaml", ".sh": "bash", "": "docker"}
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
FAMILIES: Mapping[str, str] = {
    "build": "Which torch is installed",
    "environment": "Where torch is, and what stands beside it",
    "files": "Its files and libraries",
    "versions": "The packages around it",
    "gpu": "Driver and GPUs",
    "system": "The system",
    "distributed": "Several processes and hosts",
    "use": "How a script uses torch",
    "training": "A training run, and its data",
    "report": "A report that was given",
    **{family: f"Scripts: {family}" for family in FAMILIES_OF_RULES},
}


def written() -> dict[str, str]:
    """Return every page: its path below the root of the docs, and its text."""
    everything = known()
    names = findings(everything)
    told = {
        f"findings/{name}.md": _finding(page, names)
        for name in names
        if (page := parts.page(name, everything.values()))
    }
    handed_on = {
        path.name: path.read_text("utf-8") for path in sorted((ROOT / ".github/docs").glob("*.md"))
    }
    return {
        "index.md": _index(handed_on),
        "findings/index.md": _of_findings(names, everything),
        "checks.md": _checks(),
        "lint.md": _rules(),
        "commands.md": _commands(),
        "examples.md": _examples(),
        "advice.md": advice.markdown(),
        **handed_on,
        **told,
    }


def findings(everything: Mapping[str, Check]) -> list[str]:
    """Return the name of everything that can be found, once each, in alphabetical order."""
    return sorted({name for check in everything.values() for name in check.names})


def _finding(page: parts.Page, names: list[str]) -> str:
    others = frozenset(names) - {page.name}
    rows = [f"# {page.name}", ""]
    for part, head in parts.PARTS.items():
        if page.parts[part]:
            rows += [] if part == "what" else [f"## {head}", ""]
            for paragraph in page.parts[part]:
                rows += [text(_begun(explain.cleaned(paragraph)), others), ""]
    for head, code in ((parts.BAD, page.bad), (parts.GOOD, page.good)):
        shown = textwrap.dedent(code).strip("\n")
        rows += [f"## {head}", "", f"```python\n{shown}\n```", ""] if code else []
    by = ", ".join(f"`{name}`" for name in (page.maker.name, *page.also))
    rows += ["---", "", f"Found by {by} (family {page.maker.family}). In the terminal:"]
    return "\n".join([*rows, "", f"```sh\ntorchdoctor explain {page.name}\n```", ""])


def _begun(told: str) -> str:
    """Return *told* with a capital where it went on after a head, and begins with a word."""
    return f"{told[0].upper()}{told[1:]}" if re.match(r"[a-z]+[ ,]", told) else told


def _of_findings(names: list[str], everything: Mapping[str, Check]) -> str:
    rows = ["# Findings", "", "A finding is named for its cause, never for the message.", ""]
    makers = {name: parts.page(name, everything.values()) for name in names}
    families = {page.maker.family for page in makers.values() if page}
    for family in [*FAMILIES, *sorted(families - set(FAMILIES))]:
        own = [name for name, page in makers.items() if page and page.maker.family == family]
        if own:
            rows += [f"## {FAMILIES.get(family, family.replace('-', ' ').capitalize())}", ""]
            rows += [f"- [{name}]({name}.md): {_what(makers[name])}" for name in own]
            rows.append("")
    return "\n".join([*rows, *_tree(names)])


def _what(page: parts.Page | None) -> str:
    return text(explain.cleaned(page.parts["what"][0])) if page and page.parts["what"] else ""


def _checks() -> str:
    rows = ["# Checks", "", "| Check | What it looks for | Findings |", "| --- | --- | --- |"]
    for check in all_checks().values():
        links = ", ".join(f"[{name}](findings/{name}.md)" for name in check.names)
        rows.append(f"| `{check.name}` | {text(explain.title(check))} | {links} |")
    return "\n".join([*rows, ""])


def _rules() -> str:
    rows = ["# Rules of lint", "", "| Rule | Severity | What it finds |", "| --- | --- | --- |"]
    for rule in all_rules().values():
        link = f"[{rule.name}](findings/{rule.name}.md)"
        rows.append(f"| {link} | {rule.severity} | {text(rule.title)} |")
    return "\n".join([*rows, ""])


def _commands() -> str:
    """Return the options of each verb, as ``--help`` tells them in a window of 100 columns."""
    rows = ["# Commands", ""]
    for verb in cli.VERBS:
        rows += [f"## {verb}", "", f"```text\n{_help(verb)}\n```", ""]
    return "\n".join(rows)


def _help(verb: str) -> str:
    parser = cli._parser([verb])  # noqa: SLF001 - the one parser that there is
    (choices,) = (action.choices for action in parser._actions if action.choices)  # noqa: SLF001
    assert isinstance(choices, Mapping)
    child = choices[verb]
    child.formatter_class = partial(argparse.HelpFormatter, width=WIDTH)
    said: str = child.format_help()
    return said.rstrip("\n")


def _examples() -> str:
    rows = ["# Examples", "", "A gate in four places; each file is run, or read, by a test.", ""]
    for path in sorted((ROOT / ".github/examples").iterdir()):
        language = LANGUAGES.get(path.suffix, "text")
        code = path.read_text("utf-8").rstrip("\n")
        rows += [f"## {path.name}", "", f"```{language}\n{code}\n```", ""]
    return "\n".join(rows)


def _index(handed_on: Mapping[str, str]) -> str:
    rows = [
        "# torchdoctor",
        "",
        "Will PyTorch work here? If not, why not? And what do I run, in which order, to fix it?",
        "",
        "```sh\ntorchdoctor check\ntorchdoctor check error.log\n```",
        "",
        "- [All findings](findings/index.md): what each means, how to tell it, and what cures it",
        "- [All checks](checks.md), and [the rules of lint](lint.md)",
        "- [All commands and their options](commands.md)",
        "- [Training advice, claim by claim](advice.md)",
        "- [Examples: GitLab, Docker, Kubernetes, Slurm](examples.md)",
        *(f"- [{_title(page)}]({path})" for path, page in handed_on.items()),
        "",
    ]
    inside = ["findings/index", "checks", "lint", "commands", "advice", "examples"]
    return "\n".join([*rows, *_tree([*inside, *(path[:-3] for path in handed_on)])])


def _title(page: str) -> str:
    return page.partition("\n")[0].removeprefix("# ")


def _tree(names: list[str]) -> Iterator[str]:
    yield from ("```{toctree}", ":hidden:", "", *names, "```", "")


def text(plain: str, names: frozenset[str] = frozenset()) -> str:
    """Return *plain* as Markdown that shows it: code as code, addresses and *names* as links."""
    return "".join(_piece(piece, names) for piece in _PIECE.findall(" ".join(plain.split())))


def _piece(piece: str, names: frozenset[str]) -> str:
    if len(piece) > 1 and piece[0] == "`":
        name = piece.strip("`")
        return f"[{name}]({name}.md)" if name in names else piece
    if piece.startswith(("http://", "https://")):
        address = piece.rstrip(".:")
        return f"<{address}>{piece[len(address) :]}"
    return _NAME.sub(
        lambda match: f"[{match[0]}]({match[0]}.md)" if match[0] in names else match[0],
        SPECIAL.sub(r"\\\1", piece),
    )
