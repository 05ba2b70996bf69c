"""The same command line for each shell: bash, PowerShell and cmd."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from functools import lru_cache

from torchdoctor.model import Commands

_PLAIN = re.compile(r"[\w@%+=:,./\\~-]+", re.ASCII)
# cmd reads ( ) & | < > ^ and PowerShell reads $ ` ; @ { } on top of the space.
_PLAIN_CMD = re.compile(r"[\w@+=:,./\\~*-]+", re.ASCII)


def in_all(lines: Iterable[Sequence[str]]) -> Commands:
    """Return *lines*, each an argument list, as they are typed in each of the three shells."""
    return _in_all(tuple(map(tuple, lines)))


@lru_cache(256)
def _in_all(lines: tuple[tuple[str, ...], ...]) -> Commands:
    return Commands(
        bash=tuple(map(shlex.join, lines)),
        powershell=tuple(map(_powershell, lines)),
        cmd=tuple(" ".join(map(_cmd_word, line)) for line in lines),
    )


def unset(name: str) -> Commands:
    """Return what takes the environment variable *name* out of the running shell."""
    return Commands(
        bash=(f"unset {name}",),
        powershell=(f"Remove-Item Env:{name}",),
        cmd=(f"set {name}=",),
    )


def assign(name: str, value: str) -> Commands:
    """Return what sets the environment variable *name* in the running shell."""
    return Commands(
        bash=(f"export {name}={shlex.quote(value)}",),
        powershell=(f"$env:{name} = {literal(value)}",),
        cmd=(f"set {name}={value}" if _PLAIN_CMD.fullmatch(value) else f'set "{name}={value}"',),
    )


def literal(word: str) -> str:
    """Return *word* as PowerShell takes it to the letter."""
    return "'" + word.replace("'", "''") + "'"


def _powershell(line: Sequence[str]) -> str:
    words = [w if _PLAIN.fullmatch(w) and w[0] != "@" else literal(w) for w in line]
    call = "& " if words[0].startswith("'") else ""
    return call + " ".join(words)


def _cmd_word(word: str) -> str:
    if _PLAIN_CMD.fullmatch(word):
        return word
    return '"' + word.replace('"', '\\"') + '"'
