"""``torchdoctor collect``: save what there is to see, redacted, to look at it elsewhere."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchdoctor.child import Run
    from torchdoctor.distributed.launcher import Seat
    from torchdoctor.snapshot import Snapshot

HELP = "write a redacted snapshot of this machine, for `torchdoctor check` elsewhere"
DEADLINE = 120.0
NAMED = 32


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    from torchdoctor.commands import looking  # noqa: PLC0415 - only the verb that runs pays

    looking.options(parser)
    looking.profile_option(parser)
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help="write it there, as a bundle if it ends in .zip (default: standard output)",
    )
    parser.add_argument(
        "--add",
        action="append",
        default=[],
        metavar="FILE",
        help="put this text in, too, redacted: the log with the error; again for each further one",
    )
    group = parser.add_argument_group("all machines of a job, started by torchrun, srun or mpirun")
    group.add_argument(
        "--gather",
        nargs="?",
        const="",
        metavar="FOLDER",
        help="bring the snapshots of all machines to rank 0, which writes one file, a line for "
        "each, for `torchdoctor compare`; by the network, or by a FOLDER that all share",
    )
    group.add_argument(
        "--every-rank", action="store_true", help="look at each rank, not once for each machine"
    )
    group.add_argument(
        "--with-hosts", action="store_true", help="keep the names of the machines in the file"
    )
    group.add_argument(
        "--wait",
        type=looking.seconds,
        default=DEADLINE,
        metavar="S",
        help=f"seconds in which all have to come (default: {DEADLINE:g})",
    )


def execute(args: argparse.Namespace) -> int:
    """Look, redact, write; return 0. With --gather: 1 where a rank did not come."""
    if args.gather is not None:
        return _gather(args)
    from torchdoctor import bundle  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.commands import output  # noqa: PLC0415
    from torchdoctor.report import printing  # noqa: PLC0415
    from torchdoctor.snapshot import dump  # noqa: PLC0415

    snapshot = _look(args)
    if not args.output:
        printing.write(dump(snapshot), sys.stdout)
        return 0
    packed = args.output.lower().endswith(".zip")
    output.save(bundle.pack(snapshot) if packed else dump(snapshot), args.output)
    said = f"{args.output}: {len(snapshot.probes)} probes, redacted. Read it before you send it."
    printing.write("\n".join([said, *bundle.inside(snapshot), ""]), sys.stderr)
    return 0


def _look(args: argparse.Namespace) -> Snapshot:
    from torchdoctor import redact  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.commands import looking  # noqa: PLC0415

    whole = looking.look(args, os.environ)
    if args.add:
        from torchdoctor import inputs  # noqa: PLC0415 - where something is added
        from torchdoctor.reading.machine import TEXT  # noqa: PLC0415

        added = inputs.read(args.add)
        texts = {name: run for name, run in added.probes.items() if name.startswith(TEXT)}
        whole = replace(whole, probes={**whole.probes, **_by_place(texts)})
    return redact.redact(whole, **redact.here(os.environ))


def _by_place(texts: Mapping[str, Run]) -> dict[str, Run]:
    """Return *texts* under names that tell nothing of where they lie."""
    from torchdoctor.reading.machine import TEXT  # noqa: PLC0415 - as above

    return {
        f"{TEXT}{number} {name.removeprefix(TEXT).replace(chr(92), '/').rpartition('/')[2]}": run
        for number, (name, run) in enumerate(texts.items(), 1)
    }


# ---- all machines of a job -----------------------------------------------------------------------


def _gather(args: argparse.Namespace) -> int:
    from torchdoctor.distributed import launcher, muster  # noqa: PLC0415

    seat = launcher.seat(os.environ)
    if isinstance(seat, str):
        raise DoctorError(
            f"--gather: {seat}. Start it as: torchrun --nnodes 2 ... -m torchdoctor collect "
            "--gather -o fleet.jsonl",
            kind="usage",
        )
    args.python = args.python or sys.executable  # the launcher has chosen it
    place = muster.place(seat, os.environ, args.gather)
    if seat.rank == 0:
        return _as_rank_0(args, place)
    text = _line(args, seat) if seat.local_rank == 0 or args.every_rank else ""
    if failed := muster.bring(place, text, args.wait):
        print(f"torchdoctor: rank {seat.rank}: {failed}.", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _line(args: argparse.Namespace, seat: Seat) -> str:
    import socket  # noqa: PLC0415 - only here

    from torchdoctor.distributed import muster  # noqa: PLC0415

    return muster.line(_look(args), seat, socket.gethostname() if args.with_hosts else "")


def _as_rank_0(args: argparse.Namespace, place: object) -> int:
    from torchdoctor.commands import output  # noqa: PLC0415
    from torchdoctor.distributed import muster  # noqa: PLC0415
    from torchdoctor.report.words import count  # noqa: PLC0415

    assert isinstance(place, muster.Place)
    seat = place.seat
    gathered = muster.at_rank_0(place, lambda: _line(args, seat), args.wait)
    with closing(gathered):
        if args.output:
            output.save(gathered.lines(), args.output)
        else:
            sys.stdout.writelines(gathered.lines())
    missing = gathered.missing(seat.world)
    said = f"{args.output or 'standard output'}: {count(gathered.snapshots, 'machine')} of "
    said += f"{count(seat.world, 'rank')}, redacted. Compare them with: torchdoctor compare "
    said += f"{args.output or 'FILE.jsonl'}"
    print(said, file=sys.stderr)  # noqa: T201
    for rank, why in gathered.refused.items():
        print(f"torchdoctor: rank {rank} brought no snapshot: {why}", file=sys.stderr)  # noqa: T201
    if missing:
        named = ", ".join(map(str, missing[:NAMED]))
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        print(  # noqa: T201
            f"torchdoctor: within {args.wait:g} s nothing came of rank {named}{more}.",
            file=sys.stderr,
        )
    return 1 if missing or gathered.refused else 0
