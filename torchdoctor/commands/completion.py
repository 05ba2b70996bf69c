"""``torchdoctor completion SHELL``: what lets a shell complete verbs, options and names."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence

HELP = "print what lets bash, zsh, fish or PowerShell complete this command"
SHELLS = ("bash", "zsh", "fish", "powershell")
WHERE = """\
where it goes:
  bash         torchdoctor completion bash >> ~/.bash_completion
  zsh          torchdoctor completion zsh > ~/.zfunc/_torchdoctor   (a folder of $fpath)
  fish         torchdoctor completion fish > ~/.config/fish/completions/torchdoctor.fish
  PowerShell   torchdoctor completion powershell >> $PROFILE
"""
NAMED = "NAME"
"""The metavar of options that take names of checks, findings or families."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = WHERE
    parser.add_argument("shell", choices=SHELLS)


def execute(args: argparse.Namespace) -> int:
    """Print the code for the shell; return 0."""
    from argcomplete import shell_integration  # noqa: PLC0415 - only the verb that runs pays

    from torchdoctor.report import printing  # noqa: PLC0415

    printing.write(shell_integration.shellcode(["torchdoctor"], shell=args.shell), sys.stdout)
    return 0


def answer(parser: Callable[[Sequence[str]], argparse.ArgumentParser]) -> None:
    """Give the shell that asks, by its variables, what may come next; does not return."""
    import argcomplete  # noqa: PLC0415 - only a shell pays

    line = os.environ.get("COMP_LINE", "")
    try:
        words = shlex.split(line)[1:]
    except ValueError:  # a quote is open
        words = line.split()[1:]
    whole = parser(words)
    for action in _actions(whole):
        if action.metavar == NAMED:
            action.completer = _names  # type: ignore[attr-defined]
    argcomplete.autocomplete(whole, always_complete_options="long")


def _actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for child in action.choices.values():
                yield from _actions(child)


def _names(prefix: str, **_: object) -> list[str]:
    """Return what the words of --only, --skip and explain may be; after a comma, the next."""
    from torchdoctor.commands.known import known  # noqa: PLC0415

    before, comma, last = prefix.rpartition(",")
    names = {n for check in known().values() for n in (check.name, check.family, *check.names)}
    return [f"{before}{comma}{name}" for name in sorted(names) if name.startswith(last)]
