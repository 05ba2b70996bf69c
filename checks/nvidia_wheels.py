"""Whether the nvidia wheels that this torch was built for are installed.

On Linux the CUDA builds take cuBLAS, cuDNN, NCCL and the rest from packages of their own
(``nvidia-cublas-cu12``, ``nvidia-cudnn-cu13``, and from torch 2.11 on ``cuda-toolkit``), and triton
from another. Without: ``libcublas.so.12: cannot open shared object file``. A lock file or
``--no-deps`` left them out; the metadata of torch 2.0.1 did not name them for all resolvers.

A wheel that is registered while its library is gone is nvidia-wheel-files-missing; wheels of two
CUDA majors in one folder are nvidia-wheels-mixed; a library from ``LD_LIBRARY_PATH`` is
cuda-lib-shadow. On Windows, and in conda's builds, torch brings its own and needs none of these.
Another version than the pinned one matters only when the import fails or cuDNN complains.

The fix is to install exactly what torch's metadata pins.

Sources: METADATA of the torch wheels, https://github.com/pytorch/pytorch/issues/100974
"""

from collections.abc import Iterator

from packaging.requirements import Requirement

from torchdoctor import nvidia, requirements, steps, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    ImportTrial,
    Interpreter,
    Platform,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding
from torchdoctor.tables import libraries

FAMILY = "files"
FINDS = ("nvidia-wheels-missing",)
AFTER = ("torch-present",)

SHOWN = 4
Lacking = tuple[Requirement, Distribution | None]
"""What torch asks for, and the distribution of another version that is there instead."""


def check(
    torch: Build | None,
    platform: Platform | Unknown,
    interpreter: Interpreter | Unknown,
    distributions: tuple[Distribution, ...],
    trial: ImportTrial | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare what torch asks for with what is installed."""
    gone = nvidia.absent(symptoms)
    asked = nvidia.asked(torch, distributions, *_assumed(platform, interpreter, gone), gone)
    told = items_of(symptoms)
    strict = trials.failed(trial) or any(s.name == "cudnn-mismatch" for s in told)
    lacking = [
        (requirement, there)
        for requirement, there in requirements.unmet(asked.values(), distributions)
        if there is None or (strict and requirement.name.startswith(nvidia.LIBRARIES))
    ]
    if torch and lacking and _explained(torch, gone, lacking):
        yield _finding(torch, lacking, trial, facts)


def _assumed(
    platform: Platform | Unknown, interpreter: Interpreter | Unknown, gone: frozenset[str]
) -> tuple[Platform, Interpreter]:
    """Return the system and the Python, or what does for them where a library is *gone*.

    A library that was looked for by this name shows Linux; the markers ask no more.
    """
    if not gone and (isinstance(platform, Unknown) or isinstance(interpreter, Unknown)):
        raise CannotTell("the system or the Python is not known")
    return (
        Platform("linux", "") if isinstance(platform, Unknown) else platform,
        Interpreter("", "3.12", "", "", "") if isinstance(interpreter, Unknown) else interpreter,
    )


def _explained(torch: Build, gone: frozenset[str], lacking: list[Lacking]) -> bool:
    """Tell whether what is *gone* is in what is lacking, where a message has to tell.

    Of a list without metadata, which may be a part of the whole, nothing else does.
    """
    if torch.distribution is None or torch.distribution.requires or not gone:
        return True
    behind = {name for library in gone for name in libraries.suppliers(library)}
    return bool(behind & {requirements.name(r) for r, _ in lacking})


def _finding(
    torch: Build, lacking: list[Lacking], trial: ImportTrial | Unknown, facts: Facts
) -> Finding:
    helpers_only = all(r.name.startswith(nvidia.HELPERS) for r, _ in lacking)
    first = ", ".join(_said(r, there) for r, there in lacking[:SHOWN])
    more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    landed = {
        requirements.name(r): (_text(r), requirements.version_in(r.specifier)) for r, _ in lacking
    }
    return Finding(
        "nvidia-wheels-missing",
        "warning" if helpers_only or trials.works(trial) else "error",
        f"torch {torch.version} needs {first}{more}, and "
        f"{'torch.compile fails' if helpers_only else 'cannot load its libraries'} without.",
        tuple(
            Evidence("torch.distribution.requires", str(r), "METADATA") for r, _ in lacking[:SHOWN]
        )
        + trials.evidence(trial),
        (
            steps.install_requirements(
                facts, landed, why="They are what torch's own metadata pins."
            ),
        ),
        because_of=("interrupted-upgrade",),
    )


def _said(requirement: Requirement, there: Distribution | None) -> str:
    return f"{_text(requirement)} ({f'{there.version} is there' if there else 'absent'})"


def _text(requirement: Requirement) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"
