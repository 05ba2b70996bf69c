"""``torchdoctor explain NAME``: what a finding means, how to tell it, and what cures it."""

from __future__ import annotations

import argparse
import sys

HELP = "explain a finding, a check or a family"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("name", metavar="NAME")


def execute(args: argparse.Namespace) -> int:
    """Print the explanation; return 0."""
    from torchdoctor.commands import install  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.registry import all_checks  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.report import explain, printing  # noqa: PLC0415

    if args.name in install.FINDS:
        said = (
            f"{args.name}: a finding of torchdoctor install\n\n{explain.cleaned(install.ABOUT)}\n"
        )
    else:
        said = explain.explain(args.name, all_checks())
    printing.write(said, sys.stdout)
    return 0
