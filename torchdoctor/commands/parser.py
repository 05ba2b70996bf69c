"""argparse, with complaints that are raised, so that they come in the format asked for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from typing import NoReturn

from torchdoctor.model import DoctorError

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_UNKNOWN = re.compile(r"unrecognized arguments: (-{1,2}[A-Za-z][\w-]*)")
MEANT = 2
"""So many words are named that may have been meant."""
ALIKE = 0.7


class Parser(argparse.ArgumentParser):
    """A parser that raises what others print before they exit, and says what may be meant."""

    def error(self, message: str) -> NoReturn:
        """Raise *message* as wrong usage."""
        verb = next(_children(self), self)
        meant = ""
        if choice := _CHOICE.search(message):
            meant = _meant(choice[1], re.findall(r"[\w.+-]+", choice[2]))
        elif unknown := _UNKNOWN.search(message):
            meant = _meant(unknown[1], _options((self, verb)))
        raise DoctorError(f"{message}{meant}; see: {verb.prog} --help", kind="usage")


def _children(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of the verb that was asked for: no other has been given its options."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for child in action.choices.values():
                if child.get_default("verb_module") is not None:
                    yield child


def _options(parsers: Iterable[argparse.ArgumentParser]) -> list[str]:
    return [o for p in parsers for action in p._actions for o in action.option_strings]  # noqa: SLF001


def _meant(word: str, known: Iterable[str]) -> str:
    """Return a question for the words among *known* that are like *word*; empty without one."""
    import difflib  # noqa: PLC0415 - only for whom makes a mistake

    given = word.lower()
    begun = [k for k in dict.fromkeys(known) if len(given) > MEANT and k.startswith(given)]
    close = difflib.get_close_matches(given, list(dict.fromkeys(known)), MEANT, ALIKE)
    meant = list(dict.fromkeys((*begun, *close)))[:MEANT]
    return f"; did you mean {' or '.join(meant)}?" if meant else ""
