"""conda, mamba or pixi see the CUDA of the driver where a CUDA build is solved for.

How it shows: "nothing provides __cuda needed by pytorch-...", "Virtual package '__cuda' does not
match any of the available virtual packages on your machine", "__cuda *, for which no candidates
were found".

Why: the solver takes the driver's CUDA as a virtual package, __cuda, and GPU builds ask for it. It
is absent where no driver is to be seen: while an image is built, on a login node, in CI; and too
old where the driver is. pixi solves for the machines that the manifest describes, and there CUDA
has to be named.

Not to be confused with a driver fault on the machine that is to run it: ``conda info`` there lists
__cuda, and nothing is wrong.

The fix is to say which CUDA the machine will have: CONDA_OVERRIDE_CUDA for one command, and
``system-requirements`` in pixi's manifest.

Sources: https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-virtual.html,
https://pixi.sh/latest/workspace/system_requirements/,
https://github.com/fieldsoftheworld/ftw-baselines/issues/117
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, gpu, requirements, shells, steps
from torchdoctor.facts import Driver, Facts, Interpreter, Symptom, Unknown
from torchdoctor.model import Evidence, Finding, Layer, Step

FAMILY = "environment"
FINDS = ("cuda-virtual-package",)

USUAL = "12"


def check(
    symptoms: tuple[Symptom, ...], driver: Driver | Unknown | None, facts: Facts
) -> Iterator[Finding]:
    """Read what the solver asked for and what it saw."""
    said = gpu.symptom(symptoms, "cuda-virtual-package")
    if said is None:
        return
    wanted = said.values.get("wanted", "").strip().strip(",*")
    has = _seen(said, driver)
    if has and wanted[:1] in "<>=!~" and requirements.accepts(wanted.replace(" ", ""), has):
        return  # it is listed among other things, and fits
    what = f"__cuda {wanted}".strip()
    state = f"it sees CUDA {has}" if has else "it sees no driver"
    yield Finding(
        "cuda-virtual-package",
        "error",
        f"The solver asks for {what} and {state} on the machine where it runs, so no GPU build of "
        "torch can be solved for.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        tuple(_steps(said, wanted, facts)),
    )


def _seen(said: Symptom, driver: Driver | Unknown | None) -> str | None:
    """Return the CUDA that the solver sees: by its own list, else by the driver here."""
    have = said.values.get("have", "")
    listed = re.search(r"__cuda=(\d{1,2}\.\d{1,2})", have) or re.fullmatch(r"(\d[\d.]*)", have)
    if listed:
        return listed[1]
    return driver.cuda if not have and isinstance(driver, Driver) else None


def _steps(said: Symptom, wanted: str, facts: Facts) -> Iterator[Step]:
    number = re.search(r"\d{1,2}(?:\.\d{1,2})?", wanted)
    cuda = number[0] if number else USUAL
    owner = facts.interpreter.installer if isinstance(facts.interpreter, Interpreter) else ""
    value = cuda if "." in cuda else f"{cuda}.0"
    name = steps.set_variable(
        "CONDA_OVERRIDE_CUDA",
        value,
        why="The solver then takes this CUDA for the one of the machine that will run it.",
    )
    if "no candidates" in said.text or owner == "pixi":
        step = steps.by_hand(
            "pixi-system-requirements",
            f"Name CUDA {cuda} among the system requirements of the pixi workspace",
            why="pixi solves for what the manifest says of the machine.",
            layer=Layer.ENVIRONMENT,
            cost=steps.VARIABLE,
            effect=effects.settled("cuda-virtual-package"),
        )
        line = ("pixi", "workspace", "system-requirements", "add", "cuda", cuda)
        yield replace(step, commands=shells.in_all([line]))
    yield replace(
        name,
        title=f"Set CONDA_OVERRIDE_CUDA={value} where the environment is solved for",
        effect=effects.then(name.effect, effects.settled("cuda-virtual-package")),
    )
