"""The manual page, written from the parsers of the command line: ``python -m torchdoctor.manual``.

A wheel has it as ``share/man/man1/torchdoctor.1``, where ``man`` looks in an environment that is
active. It is made when the wheel is, so it cannot differ from the options. argparse-manpage would
do, too, but everybody who installs from a checkout would have to download it, and it asks for a
parser with the options of all verbs, which nothing else makes. Six requests of roff are enough.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from torchdoctor import __version__, cli

_SPELLED = {
    "\\": r"\e",
    "-": r"\-",
    "'": r"\(aq",
    "`": r"\(ga",
    "^": r"\(ha",
    "~": r"\(ti",
    "\n": " ",
}
"""What roff would take for something else, or print as another character."""
_MANY = {"?": "[{0}]", "*": "[{0} ...]", "+": "{0} [{0} ...]", argparse.REMAINDER: "{0} ..."}
EXITS = {
    "0": "nothing at or above --fail-on",
    "1": "something",
    "2": "wrong usage, or an input that cannot be read",
    "3": "torchdoctor itself failed, or, with --strict, could not tell",
    "130": "interrupted",
}


def page() -> str:
    """Return the manual page of all verbs, in roff's man macros; ASCII."""
    whole = cli._parser([])  # noqa: SLF001 - the one parser that there is
    rows = [
        f'.TH TORCHDOCTOR 1 "" "torchdoctor {__version__}" "User Commands"',
        ".SH NAME",
        f"torchdoctor \\- {_text('say whether PyTorch will work here, why not, and what to run')}",
        ".SH SYNOPSIS",
        ".B torchdoctor",
        r"\fIVERB\fR [\fIoption\fR ...]",
        ".SH DESCRIPTION",
        _text(whole.description or ""),
        ".SH OPTIONS",
        *_options(whole, whole._actions),  # noqa: SLF001 - argparse has no other way to ask
        ".SH VERBS",
        *(row for verb in cli.VERBS for row in _verb(verb, _child(verb))),
        ".SH EXIT STATUS",
        *(row for code, what in EXITS.items() for row in (".TP", rf"\fB{code}\fR", _text(what))),
    ]
    return "\n".join(rows) + "\n"


def _child(verb: str) -> tuple[argparse.ArgumentParser, str]:
    """Return the parser of *verb*, and what the verb does."""
    for action in cli._parser([verb])._actions:  # noqa: SLF001 - see page()
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            (about,) = action._choices_actions  # noqa: SLF001
            return action.choices[verb], about.help or ""
    raise LookupError(verb)


def _verb(verb: str, child: tuple[argparse.ArgumentParser, str]) -> Iterator[str]:
    parser, about = child
    yield f".SS {_text(verb)}"
    taken = [_value(a) for a in parser._actions if not a.option_strings]  # noqa: SLF001 - see page()
    yield " ".join([rf"\fBtorchdoctor {_text(verb)}\fR [\fIoption\fR ...]", *taken])
    yield ".PP"
    yield _text(f"{about[:1].upper()}{about[1:]}.")
    if parser.description:
        yield ".PP"
        yield _text(parser.description)
    for group in parser._action_groups:  # noqa: SLF001 - see page()
        if (title := group.title) and group._group_actions:  # noqa: SLF001 - see page()
            if title not in {"positional arguments", "options"}:
                yield ".PP"
                yield _text(f"{title[:1].upper()}{title[1:]}:")
            yield from _options(parser, group._group_actions)  # noqa: SLF001 - see page()


def _options(parser: argparse.ArgumentParser, actions: list[argparse.Action]) -> Iterator[str]:
    for action in actions:
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):  # noqa: SLF001
            continue
        if action.help == argparse.SUPPRESS:
            continue
        names = ", ".join(rf"\fB{_text(name)}\fR" for name in action.option_strings)
        value = "" if action.nargs == 0 else _value(action)
        yield ".TP"
        yield " ".join(part for part in (names, value) if part)
        if action.help:
            yield _text(action.help % {**vars(action), "prog": parser.prog})


def _value(action: argparse.Action) -> str:
    """Return what stands for the value of an option, or for an argument."""
    names = action.metavar or action.dest.upper()
    shown = rf"\fI{_text(names if isinstance(names, str) else ' '.join(names))}\fR"
    if action.choices is not None and action.metavar is None:
        shown = "|".join(_text(str(choice)) for choice in action.choices)
    return _MANY.get(str(action.nargs), "{0}").format(shown)


def _text(text: str) -> str:
    """Return *text* as roff prints it: one line that begins with no request."""
    spelled = "".join(_SPELLED.get(character, character) for character in text.strip())
    return rf"\&{spelled}" if spelled.startswith(".") else spelled


if __name__ == "__main__":
    sys.stdout.write(page())
