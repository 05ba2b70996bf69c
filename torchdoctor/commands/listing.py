"""``torchdoctor list``: the checks and the findings that each can make; the rules of lint."""

from __future__ import annotations

import argparse
import sys

HELP = "list the checks with the findings that each can make, and the rules of lint"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb: none."""
    del parser


def execute(args: argparse.Namespace) -> int:
    """Print the list; return 0."""
    from torchdoctor.lint import catalogue  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.registry import all_checks  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.report import explain, printing  # noqa: PLC0415
    from torchdoctor.shards import verdict  # noqa: PLC0415
    from torchdoctor.training import proofs  # noqa: PLC0415

    del args
    verbs = {"shards": verdict.as_check(), **proofs.as_checks()}
    text = f"{explain.listing({**all_checks(), **verbs})}\n{catalogue.listing()}"
    printing.write(text, sys.stdout)
    return 0
