"""``torchdoctor explain NAME``: what a finding means, how to tell it, and what cures it."""

from __future__ import annotations

import argparse
import sys

from torchdoctor.model import DoctorError

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


def execute(args: argparse.Namespace) -> int:
    """Print the explanation; return 0.

    Raises:
        DoctorError: nothing is known of the name, or of the words.

    """
    from torchdoctor.commands import install  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.commands.known import known  # noqa: PLC0415
    from torchdoctor.report import explain, printing  # noqa: PLC0415

    if bool(args.name) == bool(args.search):
        raise DoctorError("explain takes a NAME or --search WORD, one of them.", kind="usage")
    if args.search:
        from torchdoctor.report import search  # noqa: PLC0415

        said = search.search(args.search, known())
    elif args.name in install.FINDS:
        said = (
            f"{args.name}: a finding of torchdoctor install\n\n{explain.cleaned(install.ABOUT)}\n"
        )
    else:
        said = explain.explain(args.name, known())
    printing.write(said, sys.stdout)
    return 0
