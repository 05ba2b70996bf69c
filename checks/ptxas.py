"""The ptxas that triton brings along knows the GPU.

How it shows: torch works on the GPU, and ``torch.compile``, vLLM or a kernel of triton ends with
"ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'".

Why: triton compiles at run time, with a ptxas of its own that is as old as triton. A GPU that came
later, such as GB10 (12.1) or Thor (11.0), is not in it, although torch has code that runs there.

Not to be confused with a torch that has no code for the GPU: there a plain computation fails, too.

The fix is a newer ptxas, that of a CUDA 13 toolkit, named by TRITON_PTXAS_PATH; or a newer torch,
which brings a newer triton.

Source: https://github.com/triton-lang/triton/issues/8539
"""

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import choose, effects, gpu, steps
from torchdoctor.facts import Build, Facts, Symptom, Toolkit, Unknown
from torchdoctor.model import Evidence, Finding, Step

FAMILY = "versions"
FINDS = ("triton-ptxas-too-old",)

USUAL = "/usr/local/cuda"
NEWEST_BEFORE = 13
"""A toolkit of this CUDA knows the GPUs of now; older ones are not named as a cure."""
BLACKWELL = "TRITON_PTXAS_BLACKWELL_PATH"


def check(
    symptoms: tuple[Symptom, ...],
    torch: Build | Unknown | None,
    toolkits: tuple[Toolkit, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read which target ptxas does not know."""
    said = gpu.symptom(symptoms, "ptxas-too-old")
    if said is None or torch is None:
        return
    target = said.values["target"]
    yield Finding(
        "triton-ptxas-too-old",
        "error",
        f"The ptxas of triton does not know {target}, so torch.compile and kernels of triton fail; "
        "torch itself is not concerned.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        tuple(_steps(said, torch, toolkits, facts)),
    )


def _steps(
    said: Symptom,
    torch: Build | Unknown,
    toolkits: tuple[Toolkit, ...] | Unknown,
    facts: Facts,
) -> Iterator[Step]:
    name = BLACKWELL if "ptxas-blackwell" in said.text else "TRITON_PTXAS_PATH"
    known = () if isinstance(toolkits, Unknown) else toolkits
    new = [t for t in known if t.release and int(t.release.partition(".")[0]) >= NEWEST_BEFORE]
    if new or not known:
        folder = (new[0].path if new else USUAL).removesuffix("/bin/nvcc")
        why = "The ptxas of a CUDA 13 toolkit knows this GPU."
        yield steps.set_variable(name, f"{folder}/bin/ptxas", why=why)
    choice = choose.choose(replace(facts, torch=effects.TO_TRY), accelerator="cuda")
    now = torch.public if isinstance(torch, Build) else None
    if choice and choice.release != now:
        yield steps.change_build(facts, choice, why="It comes with a newer triton.")
