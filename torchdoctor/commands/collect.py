"""``torchdoctor collect``: save what there is to see, redacted, to look at it elsewhere."""

from __future__ import annotations

import argparse
import os
import sys

HELP = "write a redacted snapshot of this machine, for `torchdoctor check` elsewhere"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    from torchdoctor.commands import looking  # noqa: PLC0415 - only the verb that runs pays

    looking.options(parser)
    parser.add_argument(
        "--output", "-o", metavar="FILE", help="write it there (default: standard output)"
    )


def execute(args: argparse.Namespace) -> int:
    """Look, redact, write; return 0."""
    from torchdoctor import redact  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.commands import looking, output  # noqa: PLC0415
    from torchdoctor.report import printing  # noqa: PLC0415
    from torchdoctor.snapshot import dump  # noqa: PLC0415

    snapshot = looking.look(args, os.environ)
    text = dump(redact.redact(snapshot, **redact.here(os.environ)))
    if args.output:
        output.save(text, args.output)
        said = (
            f"{args.output}: {len(snapshot.probes)} probes, redacted. Read it before you send it."
        )
        printing.write(said, sys.stderr)
    else:
        printing.write(text, sys.stdout)
    return 0
