"""``torchdoctor lock``: write down what an environment that works is like."""

from __future__ import annotations

import argparse
import os
import sys

from torchdoctor.model import DoctorError

HELP = "write a file of what this environment is like, for `torchdoctor check --lock` elsewhere"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    from torchdoctor.commands import looking  # noqa: PLC0415 - only the verb that runs pays

    looking.options(parser)
    parser.add_argument(
        "--output", "-o", metavar="FILE", help="write it there (default: standard output)"
    )
    parser.add_argument(
        "--anyway", action="store_true", help="lock an environment that is broken, too"
    )


def execute(args: argparse.Namespace) -> int:
    """Look, judge, write; return 0, or 1 where the environment does not work."""
    from torchdoctor import diagnosis, lock  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.commands import looking, output  # noqa: PLC0415
    from torchdoctor.report import printing  # noqa: PLC0415

    seen = diagnosis.expecting(looking.look(args, os.environ), (), live=True)
    report = diagnosis.report(seen)
    if report.verdict == "broken" and not args.anyway:
        printing.write(
            f"torchdoctor: nothing was locked, since this does not work: {report.headline} "
            "(torchdoctor check says more; --anyway locks it as it is)\n",
            sys.stderr,
        )
        return 1
    if not lock.held(seen.facts):
        raise DoctorError("nothing could be told of this environment, so nothing was locked.")
    text = lock.dump(seen.facts, seen.snapshot.collected_at)
    if args.output:
        output.save(text, args.output)
        many = len(lock.held(seen.facts))
        said = f"{args.output}: {many} facts. Compare with: torchdoctor check --lock {args.output}"
        printing.write(f"{said}\n", sys.stderr)
    else:
        printing.write(text, sys.stdout)
    return 0
