"""``torchdoctor list``: the checks, and the findings that each can make."""

from __future__ import annotations

import argparse
import sys

HELP = "list the checks and the findings that each can make"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb: none."""
    del parser


def execute(args: argparse.Namespace) -> int:
    """Print the list; return 0."""
    from torchdoctor.registry import all_checks  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.report import explain, printing  # noqa: PLC0415

    del args
    printing.write(explain.listing(all_checks()), sys.stdout)
    return 0
