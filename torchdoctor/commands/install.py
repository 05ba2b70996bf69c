"""``torchdoctor install``: the command that brings the newest torch that fits, and why that one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchdoctor.commands import looking, output
from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from torchdoctor.constraints import Wish
    from torchdoctor.registry import Check

HELP = "print the command that installs the newest torch that fits this machine"
INSTALLERS = ("pip", "uv", "conda", "pixi", "poetry", "pdm")
FINDS = ("no-build-fits",)
ABOUT = """No build of torch fits this machine together with what was asked for.

How it shows: torchdoctor install names what excludes every build, each with its value, and the
releases that it leaves; no release is left by all of them.

Why: a build has to be published for the system and its Python, its C library must not be newer
than the system's, the driver has to run its CUDA, it needs machine code for every GPU, and the
companions and neighbours that are wanted have to exist for it.

The fix that is shown gives up as little as possible, the cheapest first: another version of a
neighbour, or none; another release of torch; one GPU of several; the CPU instead of the GPU;
another Python; a newer driver; a newer system. Source: the tables of releases, builds, drivers,
GPUs and neighbours."""

COMPANIONS = ("torchvision", "torchaudio")
KINDS = {"cuda": "CUDA", "rocm": "ROCm", "xpu": "XPU", "cpu": "CPU"}


def as_check() -> Check:
    """Return this verb in the form in which checks are explained."""
    from torchdoctor.registry import Check  # noqa: PLC0415 - only for explain

    return Check("install", "build", ABOUT, (), frozenset(), (), FINDS, lambda: iter(()))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "inputs", nargs="*", metavar="INPUT", help="what another machine said (- for stdin)"
    )
    parser.add_argument(
        "--torch", default="", metavar="X.Y", help="this release, or one of these (2.13, >=2.10)"
    )
    parser.add_argument(
        "--with",
        dest="beside",
        action="append",
        default=[],
        metavar="NAME",
        help="torchvision, torchaudio, xformers, vllm==0.33.0 ... (commas between several)",
    )
    parser.add_argument("--accelerator", choices=("cpu", "cuda", "rocm", "xpu"))
    parser.add_argument(
        "--python",
        metavar="X.Y or PATH",
        help="a new environment with this Python, or the interpreter to look at",
    )
    parser.add_argument(
        "--for",
        dest="installer",
        choices=INSTALLERS,
        help="the installer (default: the environment's own)",
    )
    output.options(parser)
    parser.set_defaults(no_import=True, verify="quick", timeout=None, expect=[])


def execute(args: argparse.Namespace) -> int:
    """Look, choose, report; return 0 where something fits, else 1."""
    wish = _wish(args)
    waiting = looking.begin(args)
    from torchdoctor import choose  # noqa: PLC0415 - while the probes run
    from torchdoctor.commands import install_report  # noqa: PLC0415 - likewise

    seen = waiting()
    found = choose.decide(seen.facts, wish)
    report = install_report.report(seen, args, wish, found)
    output.write(report, args)
    return 1 if report.findings else 0


def _wish(args: argparse.Namespace) -> Wish:
    from torchdoctor.constraints import Wish  # noqa: PLC0415 - only this verb pays

    names = [name.strip() for entry in args.beside for name in re.split(r",(?![^\[]*\])", entry)]
    wanted = _joined(names)
    python = None
    if args.python and re.fullmatch(r"\d+\.\d+t?", args.python):
        python, args.python = args.python, None
    try:
        return Wish(
            args.torch,
            args.accelerator,
            python,
            tuple(name for name in wanted if name in COMPANIONS),
            tuple(name for name in wanted if name not in (*COMPANIONS, "torch")),
        )
    except ValueError as error:
        raise DoctorError(f"{error}; see: torchdoctor install --help", kind="usage") from error


def _joined(words: Iterable[str]) -> list[str]:
    """Put together what a comma inside a specifier took apart: vllm>=0.20 and <0.30."""
    joined: list[str] = []
    for word in filter(None, words):
        if word[0] in "<>=!~" and joined:
            joined[-1] += f",{word}"
        else:
            joined.append(word)
    return joined
