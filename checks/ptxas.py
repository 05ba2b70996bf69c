"""The ptxas that triton brings along knows the GPU.

How it shows: torch works on the GPU, and ``torch.compile``, vLLM or a kernel of triton ends with
"ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'".

Why: triton compiles at run time, with a ptxas of its own that is as old as triton. A GPU that came
later, such as GB10 (12.1) or Thor (11.0), is not in it, although torch has code that runs there.

Not to be confused with a torch that has no code for the GPU: there a plain computation fails, too.

The fix is a newer ptxas, that of a CUDA 13 toolkit, named by TRITON_PTXAS_PATH; or a newer torch,
which brings a newer triton.

Source: https://github.com/triton-lang/triton/issues/8539; for ``check --profile build``, which asks
that ptxas for its release, what ptxas of each CUDA lists as values of ``--gpu-name``.
"""

from collections.abc import Iterator, Mapping

from torchdoctor import building, choose, effects, gpu, steps
from torchdoctor.facts import (
    Build,
    BuildTools,
    Expectation,
    Facts,
    Gpu,
    Symptom,
    Toolkit,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Step

FAMILY = "versions"
FINDS = ("triton-ptxas-too-old",)

USUAL = "/usr/local/cuda"
NEWEST_BEFORE = 13
"""A toolkit of this CUDA knows the GPUs of now; older ones are not named as a cure."""
BLACKWELL = "TRITON_PTXAS_BLACKWELL_PATH"


def check(
    symptoms: tuple[Symptom, ...] | Unknown,
    torch: Build | Unknown | None,
    toolkits: tuple[Toolkit, ...] | Unknown,
    expectation: Expectation,
    build_tools: BuildTools | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read which target ptxas does not know, else ask the table of its release."""
    said = gpu.symptom(symptoms, "ptxas-too-old")
    if torch is None:
        return
    if said is None and building.asked(expectation):
        yield from _by_release(build_tools, gpus, torch, toolkits, facts)
        return
    if said is None:
        if isinstance(symptoms, Unknown):
            raise CannotTell(f"symptoms: {symptoms.reason}")
        return
    target = said.values["target"]
    yield Finding(
        "triton-ptxas-too-old",
        "error",
        f"The ptxas of triton does not know {target}, so torch.compile and kernels of triton fail; "
        "torch itself is not concerned.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        tuple(_steps("ptxas-blackwell" in said.text, torch, toolkits, facts)),
    )


def _by_release(
    tools: BuildTools | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
    torch: Build | Unknown,
    toolkits: tuple[Toolkit, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    from torchdoctor.tables import nvcc as table  # noqa: PLC0415 - for whom compiles

    programs = tools if isinstance(tools, Unknown) else tools.ptxas
    if isinstance(programs, Unknown):
        raise CannotTell(programs.reason)
    for card in building.cards(gpus) if programs else ():
        assert card.capability is not None
        program = _program(programs, card.capability)
        known, target = table.targets(programs[program]), _target(card.capability)
        if known is None:
            raise CannotTell(f"CUDA {programs[program]} is not in the tables of {table.as_of()}")
        if target in known or _number(target) < max(map(_number, known)):
            continue  # one that it has dropped is another matter
        yield Finding(
            "triton-ptxas-too-old",
            "error",
            f"The {program} of triton is of CUDA {programs[program]} and does not know {card.name}"
            f" (sm_{target}), so torch.compile and kernels of triton fail; torch itself is not"
            " concerned.",
            (
                Evidence("build_tools.ptxas", f"{program} {programs[program]}", "ptxas --version"),
                Evidence("gpus", f"{card.name} sm_{target}", "driver"),
            ),
            tuple(_steps(program == "ptxas-blackwell", torch, toolkits, facts)),
        )
        return


def _program(programs: Mapping[str, str], capability: tuple[int, int]) -> str:
    """Return which of *programs* triton calls: for GPUs from 10.0 on, newer ones have their own."""
    of_its_own = capability >= (10, 0) and "ptxas-blackwell" in programs
    return "ptxas-blackwell" if of_its_own else next(iter(programs))


def _target(capability: tuple[int, int]) -> str:
    """Return what triton asks for: from 9.0 on, the GPU's own variant."""
    return f"{capability[0]}{capability[1]}" + ("a" if capability >= (9, 0) else "")


def _number(target: str) -> int:
    return int(target.rstrip("af"))


def _steps(
    blackwell: bool,  # noqa: FBT001 - which of the two programs
    torch: Build | Unknown,
    toolkits: tuple[Toolkit, ...] | Unknown,
    facts: Facts,
) -> Iterator[Step]:
    name = BLACKWELL if blackwell else "TRITON_PTXAS_PATH"
    known = () if isinstance(toolkits, Unknown) else toolkits
    new = [t for t in known if t.release and int(t.release.partition(".")[0]) >= NEWEST_BEFORE]
    if new or not known:
        folder = (new[0].path if new else USUAL).removesuffix("/bin/nvcc")
        why = "The ptxas of a CUDA 13 toolkit knows this GPU."
        step = steps.set_variable(name, f"{folder}/bin/ptxas", why=why)
        release = (new[0].release if new else None) or f"{NEWEST_BEFORE}.0"
        programs = {"ptxas-blackwell" if blackwell else "ptxas": release}
        told = building.becomes(ptxas=programs)
        yield steps.compiling.with_effect(step, effects.then(step.effect, told))
    choice = choose.choose(facts.but(torch=effects.TO_TRY), accelerator="cuda")
    now = torch.public if isinstance(torch, Build) else None
    if choice and choice.release != now:
        step = steps.change_build(facts, choice, why="It comes with a newer triton.")
        effect = effects.then(step.effect, building.becomes(ptxas=effects.TO_TRY))
        yield steps.compiling.with_effect(step, effect)
