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
)
from torchdoctor.model import CannotTell, Evidence, Finding
from torchdoctor.tables import libraries

FAMILY = "files"
FINDS = ("nvidia-wheels-missing",)
AFTER = ("torch-present",)

SHOWN = 4


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
    if isinstance(platform, Unknown) or isinstance(interpreter, Unknown):
        if not gone:
            raise CannotTell("the system or the Python is not known")
        # A library that was looked for by this name shows Linux; the markers ask no more.
        if isinstance(platform, Unknown):
            platform = Platform("linux", "")
        if isinstance(interpreter, Unknown):
            interpreter = Interpreter("", "3.12", "", "", "")
    asked = nvidia.asked(torch, distributions, platform, interpreter, gone)
    told = () if isinstance(symptoms, Unknown) else symptoms
    strict = trials.failed(trial) or any(s.name == "cudnn-mismatch" for s in told)
    lacking = [
        (requirement, there)
        for requirement, there in requirements.unmet(asked.values(), distributions)
        if there is None or (strict and requirement.name.startswith(nvidia.LIBRARIES))
    ]
    if torch is None or not lacking:
        return
    # Where only a message tells, and a list that may be a part of it, one of them has to be behind.
    behind = {name for library in gone for name in libraries.suppliers(library)}
    by_table = torch.distribution is not None and not torch.distribution.requires
    if by_table and gone and not behind & {requirements.name(r) for r, _ in lacking}:
        return
    helpers_only = all(r.name.startswith(nvidia.HELPERS) for r, _ in lacking)
    first = ", ".join(_said(r, there) for r, there in lacking[:SHOWN])
    more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    landed = {
        requirements.name(r): (_text(r), requirements.version_in(r.specifier)) for r, _ in lacking
    }
    yield Finding(
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
