"""Whether triton is of the release that this torch needs.

``torch.compile`` on a GPU hands its code to triton, and the two share interfaces that change with
every release: ``cannot import name 'AttrsDescriptor' from 'triton.compiler.compiler'``,
``'triton' has no attribute ...``. Linux wheels of torch pin one triton; packages such as
vllm or unsloth, or an upgrade, bring another. On Windows the package is ``triton-windows``, which
torch does not name: its first two numbers have to be those of the triton of that torch release.

torch itself imports and runs without, so this is a warning. A CPU build needs none. A triton that
is absent is nvidia-wheels-missing on Linux, whose wheels ask for it. Wheels for Windows ask for
none: there it is triton-missing once torch.compile has said "Cannot find a working triton
installation". That xFormers finds "a matching Triton" not available harms nothing.

The fix is the triton that torch pins. ``torch._dynamo.config.suppress_errors = True`` runs what
cannot be compiled as it is, slower.

Sources: METADATA of the torch wheels, https://github.com/woct0rdho/triton-windows
"""

from collections.abc import Iterator
from dataclasses import replace

from packaging.requirements import Requirement

from torchdoctor import effects, gpu, requirements, steps
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    Interpreter,
    Platform,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step
from torchdoctor.tables import releases

FAMILY = "versions"
FINDS = ("triton-version-mismatch", "triton-missing")
AFTER = ("torch-present",)

TRITONS = ("triton", "triton-windows", "pytorch-triton", "pytorch-triton-rocm", "triton-rocm")


def check(
    torch: Build | Unknown | None,
    distributions: tuple[Distribution, ...] | Unknown,
    platform: Platform | Unknown,
    interpreter: Interpreter | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare each triton that is installed with what torch asks for, then read the message."""
    if torch is None:
        return
    said = gpu.symptom(symptoms, "triton-not-found")
    listed = items_of(distributions)
    if said and not any(d.name in TRITONS for d in listed):
        yield _missing(said, torch, platform, facts)
        return
    if isinstance(torch, Unknown) or isinstance(distributions, Unknown):
        raise CannotTell("which torch, or which packages, are installed is not known")
    if isinstance(platform, Unknown) or isinstance(interpreter, Unknown):
        raise CannotTell("the system or the Python is not known")
    marks = requirements.environment(platform, interpreter)
    asked = _asked(torch, marks)
    for triton in distributions:
        wanted: Requirement | None
        if triton.name == "triton-windows" and gpu.kind(torch) == "cuda":
            wanted = _on_windows(torch)
        else:
            wanted = asked.get(triton.name)
        if wanted is None or requirements.accepts(wanted.specifier, triton.version) is not False:
            continue
        yield _other(torch, triton, wanted, facts)


def _other(torch: Build, triton: Distribution, wanted: Requirement, facts: Facts) -> Finding:
    version = requirements.version_in(wanted.specifier)
    label = (torch.distribution or torch).version.partition("+")[2] or None
    why = f"It is the triton of torch {torch.public}."
    return Finding(
        "triton-version-mismatch",
        "warning",
        f"{triton.name} {triton.version} is installed and torch {torch.version} needs "
        f"{wanted.specifier}, so torch.compile fails on the GPU.",
        (
            Evidence("distributions", f"{triton.name} {triton.version}", triton.folder),
            Evidence("torch.distribution.requires", str(wanted), "METADATA"),
        ),
        (
            steps.install_requirements(
                facts, {triton.name: (f"{triton.name}{wanted.specifier}", version)}, why=why
            )
            if triton.name in ("triton", "triton-windows")
            else steps.align(facts, {triton.name: version}, steps.index_for(facts, label), why=why),
        ),
    )


def _missing(
    said: Symptom, torch: Build | Unknown, platform: Platform | Unknown, facts: Facts
) -> Finding:
    which = f"torch {torch.version}" if isinstance(torch, Build) else "torch"
    windows = isinstance(platform, Platform) and platform.system == "win32"
    return Finding(
        "triton-missing",
        "error",
        f"torch.compile finds no triton for {which}"
        + (", whose wheels for Windows bring none." if windows else "."),
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (_bring(torch, platform, facts),),
        confidence="likely",
    )


def _bring(torch: Build | Unknown, platform: Platform | Unknown, facts: Facts) -> Step:
    wanted = None
    if isinstance(torch, Build) and isinstance(platform, Platform):
        wanted = _wanted(torch, platform)
    if wanted is None:
        return steps.by_hand(
            "install-triton",
            "Install the triton that belongs to this torch: on Linux the one that its METADATA"
            " pins, on Windows triton-windows (3.4 for torch 2.8, 3.5 for 2.9, 3.6 for 2.10)",
            why="torch.compile hands the code for the GPU to triton.",
            layer=Layer.PACKAGES,
            cost=steps.COMPANION,
            effect=effects.settled("triton-not-found"),
        )
    version = requirements.version_in(wanted.specifier)
    step = steps.install_requirements(
        facts,
        {wanted.name: (f"{wanted.name}{wanted.specifier}", version)},
        why="torch.compile hands the code for the GPU to triton.",
    )
    return replace(step, effect=effects.then(step.effect, effects.settled("triton-not-found")))


def _wanted(torch: Build, platform: Platform) -> Requirement | None:
    """Return the triton for *torch* on *platform*; None where there is none, or it is not known."""
    if gpu.kind(torch) not in ("cuda", None):
        return None
    try:
        return _on_windows(torch) if platform.system == "win32" else _pinned(torch, platform)
    except CannotTell:
        return None


def _asked(torch: Build, marks: dict[str, str]) -> dict[str, Requirement]:
    if torch.distribution is None:
        return {}
    found = requirements.needed(torch.distribution, marks)
    return {requirements.name(r): r for r in found if "triton" in r.name}


def _pinned(torch: Build, platform: Platform) -> Requirement | None:
    release = releases.torch_release(torch.version)
    key = gpu.platform_key(platform) or "linux_x86_64"
    pin = release.triton.get(key) if release else None
    return requirements.parse(f"triton{pin}") if pin else None


def _on_windows(torch: Build) -> Requirement:
    release = releases.torch_release(torch.version)
    if release is None:
        raise CannotTell(f"the tables have no row for torch {torch.version}")
    pinned = requirements.parse(f"triton{release.triton.get('linux_x86_64', '')}")
    first = requirements.version_in(pinned.specifier) if pinned else "0"
    major, minor, *_ = (*first.split("."), "0")
    if major == "3" and minor == "0":
        minor = "1"  # the first for Windows; it was made for torch 2.4, too
    if not major.isdecimal() or int(major) < 3:  # noqa: PLR2004 - there is none before
        raise CannotTell(f"which triton-windows torch {torch.version} needs is not on record")
    return Requirement(f"triton-windows=={major}.{minor}.*")
