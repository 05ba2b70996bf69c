"""What the verbs that look at a machine share: their options, and from options to facts."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchdoctor.background import Background
from torchdoctor.commands import output
from torchdoctor.diagnosis import Look
from torchdoctor.model import DoctorError
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.distributed.session import Wish
    from torchdoctor.facts import Expectation
    from torchdoctor.model import Plan
    from torchdoctor.report.document import Detail
    from torchdoctor.snapshot import Snapshot


MOST_RANKS = 64
"""Ranks of an all_reduce on one machine."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to look at, and for how long."""
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="the interpreter, or the folder of an environment, to look at (default: the active "
        "environment's)",
    )
    trial_options(parser)
    parser.add_argument(
        "--verify",
        choices=("quick", "full"),
        default="quick",
        help="compare installed files by size and hash the few that matter most, or hash all",
    )
    parser.add_argument(
        "--after",
        action="append",
        default=[],
        metavar="MODULE",
        help="import torch once more after this module, as a program does that imports it first "
        "(commas between several)",
    )
    parser.add_argument(
        "--script",
        metavar="FILE",
        help="the same, after all that this program imports before torch (read, not run)",
    )


def trial_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say whether torch is imported, and how long each probe may take."""
    parser.add_argument(
        "--no-import",
        action="store_true",
        help="look at files and the driver only; do not try to import torch",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="seconds that each probe may take (default: 10, and 60 for an import)",
    )


def profile_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says what torch is used for."""
    parser.add_argument(
        "--profile",
        choices=("run", "build"),
        help="build: look, too, at what compiles extensions for torch (compilers, nvcc, ninja, "
        "Python.h, TORCH_CUDA_ARCH_LIST, triton's ptxas), and judge it",
    )


def folder_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which folder of a copied Windows is which."""
    group = parser.add_argument_group("a copied or mounted Windows installation")
    group.add_argument(
        "--root",
        metavar="FOLDER",
        help="look at the Windows installation in this folder, on any system; its DLLs are read, "
        "nothing of it is run",
    )
    group.add_argument("--system32", metavar="FOLDER", help="what plays its System32")
    group.add_argument(
        "--python-dir",
        metavar="FOLDER",
        help="the environment in it (the folder of python.exe, or of a virtual environment)",
    )
    group.add_argument(
        "--path-dir",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder of its PATH; again for each further one",
    )


def look(args: argparse.Namespace, environ: Mapping[str, str]) -> Snapshot:
    """Return a snapshot of this machine, as *args* say.

    Raises:
        DoctorError: ``--python`` names no interpreter that can be looked at.

    """
    from torchdoctor import collect, interpreters  # noqa: PLC0415 - --help does not need them

    if args.python:
        python = interpreters.given(args.python)
        # Another environment's activation says nothing about the one that was asked for.
        activated = ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV")
        environ = {name: value for name, value in environ.items() if name not in activated}
    else:
        python = interpreters.active(environ)
    from torchdoctor import imports  # noqa: PLC0415

    request = collect.Request(
        python=python,
        working_folder=str(Path.cwd()),
        import_torch=not args.no_import,
        verify=args.verify,
        timeout=args.timeout or collect.TIMEOUT,
        import_timeout=args.timeout or collect.IMPORT_TIMEOUT,
        # They take as long as all the rest of a look that imports nothing.
        shared_objects=not args.no_import or args.verify == "full",
        after=imports.given(getattr(args, "after", []), getattr(args, "script", None)),
        all_reduce=_wish(args),
        profile=getattr(args, "profile", None) or "run",
    )
    if getattr(args, "quiet", False) or not (sys.stderr and sys.stderr.isatty()):
        snapshot = collect.collect(request, environ)
    elif args.verify == "full":
        from torchdoctor.commands import progress  # noqa: PLC0415 - for whom waits

        with progress.shown("Comparing files") as told:
            snapshot = collect.collect(replace(request, progress=told), environ)
    else:
        from torchdoctor.commands import progress  # noqa: PLC0415 - for whom waits

        with progress.waiting("Looking at this machine"):
            snapshot = collect.collect(request, environ)
    if args.python:
        _refuse_what_is_no_python(snapshot, args.python)
    return snapshot


def _wish(args: argparse.Namespace) -> Wish | None:
    """Return the all_reduce that is asked for, if one is."""
    asked = getattr(args, "all_reduce", None)
    if asked is None:
        return None
    from torchdoctor.distributed.session import Wish  # noqa: PLC0415 - for whom asks for it

    return Wish(ranks=asked or None)


def ranks(text: str) -> int:
    """Return *text* as a number of ranks, for argparse."""
    number = int(text)
    if not 1 <= number <= MOST_RANKS:
        raise argparse.ArgumentTypeError(f"a number of ranks from 1 to {MOST_RANKS}")
    return number


@dataclass(frozen=True, slots=True)
class Tried:
    """What an all_reduce that was tried adds to a report."""

    data: Mapping[str, object] = field(default_factory=dict)
    details: tuple[Detail, ...] = ()

    def verified(self, plan: Plan) -> Plan:
        """Return *plan*; what shows that a step worked tries an all_reduce again if this did."""
        if not self.data:
            return plan
        from torchdoctor.commands import all_reduce_report  # noqa: PLC0415 - as above

        return all_reduce_report.verified(plan, "{} --all-reduce".format)


def tried(seen: Look) -> Tried:
    """Return what is said of an all_reduce that was tried."""
    if "all-reduce" not in seen.snapshot.probes:
        return Tried()
    from torchdoctor.commands import all_reduce_report  # noqa: PLC0415 - for whom asked for it

    return Tried(*all_reduce_report.told(seen.facts, seen.snapshot))


def begin(args: argparse.Namespace) -> Callable[[], Look]:
    """Start to look at what *args* name; return what waits for the end and gives the facts.

    The probes of a live machine run while the caller gets ready to judge.

    Raises:
        DoctorError: an input cannot be read, or an option is wrong; here or while waiting.

    """
    # A wrong word, or file, is told before anything is looked at.
    if args.expect or getattr(args, "lock", None) or getattr(args, "policy", None) is not None:
        _expected(args)
    if getattr(args, "root", None):
        return lambda: _in_folder(args)
    if args.inputs:
        from torchdoctor import inputs  # noqa: PLC0415 - a live machine has none

        taken = inputs.read(args.inputs)
        return lambda: _judged(taken, args, live=False)
    looking = Background(partial(look, args, os.environ))
    return lambda: _judged(looking.result(), args, live=True)


def _in_folder(args: argparse.Namespace) -> Look:
    from torchdoctor.reading import folder  # noqa: PLC0415 - a live machine has none
    from torchdoctor.snapshot import Snapshot  # noqa: PLC0415

    if args.inputs or args.python:
        raise DoctorError(
            "--root is looked at by itself; leave out --python and other inputs.", kind="usage"
        )
    facts = folder.read(
        args.root,
        system32=args.system32,
        python=args.python_dir,
        path=tuple(args.path_dir),
        expectation=_expected(args),
    )
    return Look(facts, Snapshot(collected_at="", probes={}), live=False, folder=args.root)


def _expected(args: argparse.Namespace, snapshot: Snapshot | None = None) -> Expectation:
    from torchdoctor import expectation  # noqa: PLC0415 - it brings all the facts along

    if snapshot is not None and not args.expect:
        expected = expectation.kept(snapshot.options)
    else:
        expected = expectation.read(args.expect)
    asked = getattr(args, "profile", None)
    if asked or snapshot is not None:
        expected = expectation.under(expected, snapshot.options if snapshot else {}, asked)
    if getattr(args, "lock", None) is not None:
        from torchdoctor import lock  # noqa: PLC0415 - only with a lock file

        expected = replace(expected, lock=lock.read(args.lock))
    if getattr(args, "policy", None) is not None:
        from torchdoctor import policy  # noqa: PLC0415 - only with a policy

        expected = replace(expected, require=policy.read(args.policy).require)
    return expected


def _judged(snapshot: Snapshot, args: argparse.Namespace, *, live: bool) -> Look:
    from torchdoctor.reading import machine  # noqa: PLC0415 - while the probes run

    if live and args.format in output.PUBLIC:
        from torchdoctor import redact  # noqa: PLC0415 - for what others will read only

        snapshot = redact.redact(snapshot, **redact.here(os.environ))
    expected = _expected(args, snapshot)
    facts = machine.read(snapshot, expected)
    if not live:
        from torchdoctor import inputs  # noqa: PLC0415 - it brings all the readers of texts

        inputs.refuse_what_says_nothing(snapshot, facts)
    return Look(facts, snapshot, live=live)


def _refuse_what_is_no_python(snapshot: Snapshot, given: str) -> None:
    run = snapshot.probes["environment"]
    if run.outcome == "answered" or run.data:
        return
    said = (run.stderr.text or run.stdout.text).strip().splitlines()
    if run.outcome == "timeout":
        reason = f"it did not answer {run.reason.removeprefix('did not end ')}"
    elif run.reason:
        reason = run.reason
    elif "SyntaxError" in run.stderr.text:
        reason = "it is older than Python 3.8"
    else:
        reason = said[-1][:200] if said else f"it said nothing and ended with {run.exit_code}"
    raise DoctorError(
        f"{given} does not answer as a Python interpreter ({reason}); "
        "give the path of a Python from 3.8 on.",
        file=given,
        kind="usage",
    )


def seconds(text: str) -> float:
    """Return *text* as a number of seconds, for argparse."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:  # noqa: PLR2004 - a day
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds
