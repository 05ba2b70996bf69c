"""The command line: ``torchdoctor VERB``. Exit codes: 0, 1, 2, 3, 130 (see README)."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from torchdoctor import __version__

if TYPE_CHECKING:
    import argparse
    from types import ModuleType

    from torchdoctor.model import DoctorError

VERBS = {
    "check": "check",
    "install": "install",
    "all-reduce": "all_reduce",
    "hang": "hang",
    "collect": "collect",
    "compare": "compare",
    "lint": "lint",
    "shards": "shards",
    "train-check": "train_check",
    "envs": "envs",
    "lock": "lock",
    "guard": "guard",
    "explain": "explain",
    "list": "listing",
    "completion": "completion",
}
"""Verb -> module of torchdoctor.commands."""
INTERRUPTED = 130
AGAIN = 0.02
"""How many seconds a signal that was lost is sent after."""
_signals: list[int] = []
"""Those that told this process to end."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line *argv* (default: that of the process) and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:  # as fast as it can be said
        print(f"torchdoctor {__version__}")  # noqa: T201
        return 0
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may come next
        from torchdoctor.commands import completion  # noqa: PLC0415

        completion.answer(_parser)
    gc.disable()  # one short run of small values: looking for garbage takes a tenth of it
    from torchdoctor.model import DoctorError  # noqa: PLC0415

    _listen()
    try:
        args = _parser(words).parse_args(words)
        if not hasattr(args, "verb_module"):
            _parser(["--help"]).print_help()
            return 2
        code: int = args.verb_module.execute(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except DoctorError as error:
        return _refused(error, words)
    except Exception as error:  # noqa: BLE001 - our own fault is told like any other
        return 128 + _signals[-1] if _is_of_signal(error) else _broken(words)
    return code


def run() -> NoReturn:
    """Run the command line of this process, and end it.

    At once: taking every module apart again would take a tenth of a short run.
    """
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    if child := sys.modules.get("torchdoctor.child"):
        child.end_all()  # before the temporary folders go, into which they may write
    atexit._run_exitfuncs()  # noqa: SLF001 - which the line after leaves no other chance
    os._exit(code)


def _listen() -> None:
    """End when a signal says so, wherever it finds us, such that no child is left behind."""
    import signal  # noqa: PLC0415

    signal.signal(signal.SIGTERM, _told)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell may have it ignored
        signal.signal(signal.SIGINT, _told)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _lost


def _told(number: int, frame: object) -> NoReturn:
    import signal  # noqa: PLC0415

    del frame
    _signals.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _is_of_signal(error: BaseException | None) -> bool:
    """Tell whether Python made *error* of what a signal raised, as it does in ``__set_name__``."""
    while error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        error = error.__cause__
    return error is not None and bool(_signals)


def _lost(what: sys.UnraisableHookArgs) -> None:
    """Send a signal once more whose exception Python let go of, as it does while it imports."""
    if not issubclass(what.exc_type, KeyboardInterrupt | SystemExit) or not _signals:
        sys.__unraisablehook__(what)
        return
    import signal  # noqa: PLC0415
    import threading  # noqa: PLC0415

    # Sent from outside it ends a wait, too; on Windows os.kill would end the process.
    send = signal.raise_signal if os.name == "nt" else lambda one: os.kill(os.getpid(), one)
    again = threading.Timer(AGAIN, send, (_signals[-1],))
    again.daemon = True
    again.start()


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    from torchdoctor.commands.parser import Parser  # noqa: PLC0415

    parser = Parser(
        prog="torchdoctor",
        description="Will PyTorch work here, why not, and what to run, in which order, to fix it.",
        epilog="exit codes: 0 nothing at or above --fail-on, 1 something, 2 wrong usage or "
        "unreadable input, 3 torchdoctor failed (or, with --strict, could not tell)",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"torchdoctor {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", parser_class=Parser)
    asked = next((word for word in words if not word.startswith("-")), None)
    # The others are needed only to name them all.
    wanted = {asked: VERBS[asked]} if asked in VERBS else VERBS
    for verb, name in wanted.items():
        module = _module(name)
        child = verbs.add_parser(verb, help=module.HELP, allow_abbrev=False)
        if verb == asked:
            module.configure(child)
            child.set_defaults(verb_module=module)
    return parser


def _module(name: str) -> ModuleType:
    from importlib import import_module  # noqa: PLC0415 - a name known only here

    return import_module(f"torchdoctor.commands.{name}")


def _refused(error: DoctorError, words: Sequence[str]) -> int:
    if _wants_json(words):
        _print_failure("usage" if error.kind == "usage" else "input", error.message, error.file)
    else:
        print(f"torchdoctor: {error.message}", file=sys.stderr)  # noqa: T201
    return 2


def _broken(words: Sequence[str]) -> int:
    import platform  # noqa: PLC0415 - only for this
    import traceback  # noqa: PLC0415

    block = (
        f"torchdoctor {__version__} failed. This is a fault of torchdoctor; please report:\n"
        f"```\n{platform.platform()}, Python {platform.python_version()}\n"
        f"torchdoctor {' '.join(words)}\n{traceback.format_exc()}```"
    )
    print(block, file=sys.stderr)  # noqa: T201
    if _wants_json(words):
        _print_failure("internal", str(sys.exc_info()[1]), None)
    return 3


def _print_failure(kind: str, message: str, file: str | None) -> None:
    from torchdoctor.report import as_json, document, printing  # noqa: PLC0415

    report = document.failure(kind, message, file)  # type: ignore[arg-type]
    printing.write(as_json.render(report), sys.stdout)


def _wants_json(words: Sequence[str]) -> bool:
    pairs = zip(words, [*words[1:], ""], strict=True)
    return any(w == "--format=json" or (w == "--format" and v == "json") for w, v in pairs)
