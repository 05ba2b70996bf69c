"""Where a report goes and how it looks: the options of every verb that judges."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdoctor.report.document import Report
    from torchdoctor.report.words import Shell

FORMATS = ("text", "json", "markdown")
PUBLIC = ("markdown",)
"""Those that are made for others to read: user, host and home are taken out before judging."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how the report looks and where it goes."""
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--output", "-o", metavar="FILE", help="write the report there")
    parser.add_argument("--quiet", "-q", action="store_true", help="one line")
    parser.add_argument("--verbose", "-v", action="store_true", help="leave nothing out")
    parser.add_argument(
        "--lang",
        choices=("en", "zh", "zh_CN"),
        help="the language of the report (default: the locale's; JSON is English unless asked)",
    )


def write(report: Report, args: argparse.Namespace) -> None:
    """Write *report* as *args* say: to the file they name, else to standard output.

    Raises:
        DoctorError: the file cannot be written.

    """
    if args.output:
        save(_render(report, args, to_file=True), args.output)
        return
    from torchdoctor.report import printing  # noqa: PLC0415 - not needed for a file

    printing.write(_render(report, args, to_file=False), sys.stdout)


def save(text: str, path: str) -> None:
    """Write *text* to the file *path*, whole or not at all.

    Raises:
        DoctorError: it cannot be written.

    """
    import tempfile  # noqa: PLC0415 - not needed to print
    from pathlib import Path  # noqa: PLC0415

    place = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            mask = os.umask(0)
            os.umask(mask)
            Path(name).chmod(0o666 & ~mask)
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise DoctorError(
            f"{path} cannot be written: {reason}; name another file.", file=path, kind="usage"
        ) from error


def _render(report: Report, args: argparse.Namespace, *, to_file: bool) -> str:
    from torchdoctor.report import printing  # noqa: PLC0415 - one format a run

    if to_file:
        look = printing.Terminal(width=100, colour=False, unicode=True, encoding="utf-8")
    else:
        look = printing.terminal(sys.stdout, os.environ)
    say = speech(args, look.encoding if args.format != "json" else "ascii")
    if say is not str:
        from torchdoctor.report.translate import translated  # noqa: PLC0415 - few need it

        report = translated(report, say)
    if args.format == "json":
        from torchdoctor.report import as_json  # noqa: PLC0415

        return as_json.render(report)
    if args.format == "markdown":
        from torchdoctor.report import markdown  # noqa: PLC0415

        return markdown.render(report, verbose=args.verbose, shell=_shell(report), say=say)
    from torchdoctor.report import text  # noqa: PLC0415

    return text.render(
        report,
        width=look.width,
        colour=look.colour,
        unicode=look.unicode,
        encoding=look.encoding,
        verbose=args.verbose,
        quiet=args.quiet,
        shell=_shell(report),
        say=say,
    )


def speech(args: argparse.Namespace, encoding: str) -> Callable[[str], str]:
    """Return what says our words in the language that *args* or the locale ask for.

    The locale's only where *encoding* has its characters; for programs, English unless asked.
    """
    from torchdoctor import locale  # noqa: PLC0415 - not needed to ask for help

    language = locale.chosen(getattr(args, "lang", None), os.environ)
    if language == locale.ENGLISH or (not args.lang and not locale.fits(language, encoding)):
        return str
    return locale.speaker(language).say


def _shell(report: Report) -> Shell:
    return "powershell" if (report.target.os or "").startswith("Windows") else "bash"
