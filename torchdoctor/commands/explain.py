"""``torchdoctor explain NAME``: what a finding means, how to tell it, and what cures it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from torchdoctor.report.explain import Voice

HELP = "explain a finding, a check, a rule of lint or a family"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("name", metavar="NAME", nargs="?")
    parser.add_argument(
        "--search",
        nargs="+",
        metavar="WORD",
        help="show the findings that these words are about (English or Chinese)",
    )
    parser.add_argument(
        "--lang", choices=("en", "zh", "zh_CN"), help="the language (default: the locale's)"
    )


def execute(args: argparse.Namespace) -> int:
    """Print the explanation; return 0.

    Raises:
        DoctorError: nothing is known of the name, or of the words.

    """
    from torchdoctor.commands.known import known  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.report import explain, printing  # noqa: PLC0415

    if bool(args.name) == bool(args.search):
        raise DoctorError("explain takes a NAME or --search WORD, one of them.", kind="usage")
    if args.search:
        from torchdoctor.report import search  # noqa: PLC0415

        said = search.search(args.search, known())
    else:
        said = explain.explain(args.name, known(), _voice(args))
    printing.write(said, sys.stdout)
    return 0


def _voice(args: argparse.Namespace) -> Voice:
    """Return what says a page in the language that *args* or the locale ask for."""
    import os  # noqa: PLC0415 - only the verb that runs pays

    from torchdoctor import locale  # noqa: PLC0415
    from torchdoctor.commands import output  # noqa: PLC0415
    from torchdoctor.report import explain, printing  # noqa: PLC0415

    say = output.speech(args, printing.terminal(sys.stdout, os.environ).encoding)
    if say is str:
        return explain.ENGLISH
    return explain.Voice(say, locale.pages(locale.CHINESE).__getitem__)
