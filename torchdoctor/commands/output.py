"""Where a report goes and how it looks: the options of every verb that judges."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torchdoctor.report.document import Report
    from torchdoctor.report.words import Shell

FORMATS = ("text", "json", "markdown", "html", "junit", "sarif", "github", "gitlab")
PROGRAMS = ("json", "junit", "sarif", "gitlab")
"""Those that programs read: all ASCII, in English unless asked."""
_OF_CI = ("junit", "sarif", "github", "gitlab")
_LOSSLESS = "backslashreplace"
"""What becomes of the bytes of a file's name that is no text."""
PUBLIC = ("markdown", "html")
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


def fail_on(
    parser: argparse.ArgumentParser,
    more: str = "",
    *,
    also: Sequence[str] = (),
    default: str | None = "error",
) -> None:
    """Add --fail-on, with what else it takes (*also*) and what else its help says (*more*)."""
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", *also, "never"),
        default=default,
        help=f"what makes the exit code 1{more or ' (default: error)'}",
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


def save(text: str | bytes | Iterable[str], path: str) -> None:
    """Write *text*, or bytes, or one part after another, to *path*, whole or not at all.

    Raises:
        DoctorError: it cannot be written.

    """
    import tempfile  # noqa: PLC0415 - not needed to print
    from pathlib import Path  # noqa: PLC0415

    place = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                for part in [text] if isinstance(text, str | bytes) else text:
                    raw = part.encode("utf-8", _LOSSLESS) if isinstance(part, str) else part
                    file.write(raw)
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
    anything = args.format in PROGRAMS or args.format == "html"  # it has escapes of its own
    say = speech(args, "utf-8" if anything else look.encoding)
    if args.format in PROGRAMS and not args.lang:
        say = str
    if say is not str:
        from torchdoctor.report.translate import translated  # noqa: PLC0415 - few need it

        report = translated(report, say)
    if args.format == "json":
        from torchdoctor.report import as_json  # noqa: PLC0415

        return as_json.render(report)
    if args.format in _OF_CI:
        return _for_ci(report, args)
    if args.format == "markdown":
        from torchdoctor.report import markdown  # noqa: PLC0415

        return markdown.render(report, verbose=args.verbose, shell=_shell(report), say=say)
    if args.format == "html":
        from torchdoctor import locale  # noqa: PLC0415
        from torchdoctor.report import page  # noqa: PLC0415

        language = "en" if say is str else locale.chosen(args.lang, os.environ).replace("_", "-")
        whole = page.render(report, shell=_shell(report), say=say, language=language)
        if to_file or look.encoding.lower().replace("-", "") == "utf8":
            return whole
        # The page says that it is UTF-8, and a shell may write what it is given in another way.
        return whole.encode("ascii", "xmlcharrefreplace").decode("ascii")
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


def _for_ci(report: Report, args: argparse.Namespace) -> str:
    from importlib import import_module  # noqa: PLC0415 - a name known only here

    form = import_module(f"torchdoctor.report.{args.format}")
    if args.format == "junit":
        made: str = form.render(report, fail_on=getattr(args, "fail_on", "error"))
        return made
    if args.format == "github" and (place := os.environ.get(form.SUMMARY)):
        _summarise(report, args, place)
    rendered: str = form.render(report)
    return rendered


def _summarise(report: Report, args: argparse.Namespace, place: str) -> None:
    """Add *report* to the summary of the job, which the runner has named."""
    from pathlib import Path  # noqa: PLC0415 - under GitHub Actions only

    from torchdoctor.report import markdown  # noqa: PLC0415

    try:
        with Path(place).open("a", encoding="utf-8", errors=_LOSSLESS, newline="\n") as file:
            file.write(markdown.render(report, verbose=args.verbose, shell=_shell(report)))
    except OSError as error:
        reason = error.strerror or str(error)
        raise DoctorError(f"{place} cannot be written: {reason}.", file=place) from error


def speech(args: argparse.Namespace, encoding: str) -> Callable[[str], str]:
    """Return what says our words in the language that *args* or the locale ask for.

    English where *encoding* lacks its characters: a page of escapes serves nobody. Who has asked
    for it is told.
    """
    from torchdoctor import locale  # noqa: PLC0415 - not needed to ask for help

    asked = getattr(args, "lang", None)
    language = locale.chosen(asked, os.environ)
    if language == locale.ENGLISH:
        return str
    if locale.fits(language, encoding):
        return locale.speaker(language).say
    if asked:
        from torchdoctor.report import printing  # noqa: PLC0415

        said = f"torchdoctor: {encoding} has no characters for --lang {asked}, so this is English; "
        printing.write(f"{said}--output FILE or PYTHONIOENCODING=utf-8 has them.", sys.stderr)
    return str


def _shell(report: Report) -> Shell:
    return "powershell" if (report.target.os or "").lower().startswith("win") else "bash"
