"""Who compiles extensions has an nvcc of torch's CUDA that knows the GPU (``--profile build``).

How it shows: before a build, by ``check --profile build``; in a build, as "CUDA_HOME environment
variable is not set", "nvcc not found at '/usr/local/cuda/bin/nvcc'", "The detected CUDA version
(11.8) mismatches the version that was used to compile PyTorch (12.8)", or "nvcc fatal : Unsupported
gpu architecture 'compute_120'".

Why: the wheels of torch bring what CUDA needs to run, and no nvcc. torch takes the toolkit that
CUDA_HOME or CUDA_PATH names, else that of the nvcc on PATH, else /usr/local/cuda, and raises where
its CUDA major is not its own; where only the minor differs it warns, and mostly goes on. For code
for this GPU, nvcc must know it: 12.0 needs CUDA 12.8; 6.1 and 7.0 are no longer in CUDA 13.

Not to be confused with what torch needs to run: a toolkit is no part of that, and without the
profile one that does not fit is a note (cuda-toolkit). Extensions without CUDA code need no nvcc.

The fix is a toolkit of torch's CUDA, beside others, named by CUDA_HOME for this build.

Sources: torch/utils/cpp_extension.py (_find_cuda_home, _check_cuda_version, _get_cuda_arch_flags);
what ptxas and nvcc of each release list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import building, effects, gpu, steps
from torchdoctor.facts import (
    Build,
    BuildTools,
    Expectation,
    Gpu,
    Runtime,
    Symptom,
    Toolkit,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Step

FAMILY = "system"
FINDS = ("nvcc-missing", "toolkit-mismatch")

NAME = "nvcc-not-found"


def check(
    expectation: Expectation,
    symptoms: tuple[Symptom, ...] | Unknown,
    build_tools: BuildTools | Unknown,
    toolkits: tuple[Toolkit, ...] | Unknown,
    torch: Build | Unknown | None,
    gpus: tuple[Gpu, ...] | Unknown,
    runtime: Runtime | Unknown,
    variables: Mapping[str, str] | Unknown,
) -> Iterator[Finding]:
    """Read what a build said, else compare the nvcc that torch would take with torch and GPUs."""
    cuda = building.cuda(torch)
    if said := gpu.symptom(symptoms, NAME):
        yield _said(said, cuda)
        return
    if not building.asked(expectation) or torch is None:
        return
    if isinstance(torch, Unknown):
        raise CannotTell(torch.reason)
    if cuda is None:
        return
    nvcc = building.nvcc(build_tools, toolkits)
    if isinstance(nvcc, Unknown):
        raise CannotTell(nvcc.reason)
    if nvcc is None:
        yield _absent(cuda, build_tools, toolkits)
        return
    if nvcc.release is None:
        raise CannotTell(f"the release of nvcc in {nvcc.path} is not known")
    if building.major(nvcc.release) != building.major(cuda):
        where = f" in {nvcc.path}" if nvcc.path else ""
        says = (
            f"The toolkit is CUDA {nvcc.release}{where}, and torch was built with CUDA {cuda}: it"
            " refuses to compile with another major."
        )
        yield _mismatch(says, nvcc, cuda, _steps(cuda, toolkits))
        return
    if not building.entries(variables):
        yield from _unknown_gpu(nvcc, cuda, build_tools, toolkits, gpus, runtime)


def _said(said: Symptom, cuda: str | None) -> Finding:
    return Finding(
        "nvcc-missing",
        "error",
        "No nvcc is found, so no CUDA code can be compiled; torch brings none along.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (steps.compiling.toolkit(cuda),),
        because_of=("cpu-only-build",),
    )


def _absent(
    cuda: str, tools: BuildTools | Unknown, toolkits: tuple[Toolkit, ...] | Unknown
) -> Finding:
    home = tools.home if isinstance(tools, BuildTools) else None
    says = (
        f"torch was built with CUDA {cuda}, and {home}, which it takes for CUDA_HOME, has no"
        " bin/nvcc, so no CUDA code can be compiled for it."
    )
    if home is None:
        says = (
            f"torch was built with CUDA {cuda}, and no nvcc is here: CUDA_HOME is not set, and"
            " neither PATH nor /usr/local has one, so no CUDA code can be compiled for it."
        )
    return Finding(
        "nvcc-missing",
        "warning",
        says,
        (Evidence("build_tools.nvcc", "not there", home or "CUDA_HOME, PATH, /usr/local/cuda"),),
        tuple(_steps(cuda, toolkits)),
    )


def _mismatch(says: str, nvcc: Toolkit, cuda: str, cures: Iterator[Step]) -> Finding:
    return Finding(
        "toolkit-mismatch",
        "error",
        says,
        (
            Evidence("build_tools.nvcc", str(nvcc.release), nvcc.path or nvcc.source),
            Evidence("torch.cuda", cuda, "torch/version.py"),
        ),
        tuple(cures),
    )


def _unknown_gpu(
    nvcc: Toolkit,
    cuda: str,
    tools: BuildTools | Unknown,
    toolkits: tuple[Toolkit, ...] | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
    runtime: Runtime | Unknown,
) -> Iterator[Finding]:
    from torchdoctor.tables import nvcc as table  # noqa: PLC0415 - for whom compiles

    cards = building.cards(gpus)
    known = building.targets(tools, str(nvcc.release)) if cards else None
    if cards and known is None:
        raise CannotTell(f"CUDA {nvcc.release} is not in the tables of {table.as_of()}")
    for card in cards:
        target = building.wanted(card, runtime)
        if building.makes(known or (), target):
            continue
        wants = table.first_with(target, building.major(cuda))
        says = f"nvcc of CUDA {nvcc.release} makes no code for {card.name} (sm_{target})."
        if wants:
            says = (
                f"nvcc of CUDA {nvcc.release} makes no code for {card.name} (sm_{target}); that of"
                f" CUDA {wants} does."
            )
        yield _mismatch(says, nvcc, cuda, _steps(wants or cuda, toolkits, target))
        return


def _steps(wants: str, toolkits: tuple[Toolkit, ...] | Unknown, target: str = "") -> Iterator[Step]:
    """Yield how a toolkit of the major of *wants*, that knows *target*, is brought or named."""
    from torchdoctor.tables import nvcc as table  # noqa: PLC0415 - as above

    here = items_of(toolkits)
    for one in here:
        fits = building.major(one.release) == building.major(wants) and one.path
        if fits and (not target or target in (table.targets(one.release or "") or ())):
            step = steps.set_variable("CUDA_HOME", one.path, why="It is of torch's CUDA major.")
            cured = effects.then(step.effect, building.becomes(nvcc=one, home=one.path))
            yield steps.compiling.with_effect(step, cured)
            break
    yield steps.compiling.toolkit(wants)
