"""HSA_OVERRIDE_GFX_VERSION, if it is set, names code that the GPU and the ROCm of torch can run.

How it shows: "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary
resources" when torch looks for GPUs, no GPU at all, a GPU that faults or hangs at the first
computation, or "no TensileLibrary".

Why: the variable makes the runtime take a GPU for another one, for cards that no build has code
for. It stays behind in shell profiles and compose files. The runtime of ROCm 7.14 and newer refuses
to start with it; a gfx1103 hangs with 11.0.0; a value for which the build has no code helps nobody.

Not to be confused with a GPU that needs it and lacks it: that is arch-not-supported.

The fix is to unset it, and to take a build that has code for the GPU. Source:
https://github.com/pytorch/pytorch/pull/179653, https://github.com/ROCm/TheRock/issues/7472
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import constraints, gpu, steps
from torchdoctor.facts import Build, Expectation, Facts, Gpu, Runtime, Symptom, Unknown
from torchdoctor.model import Evidence, Finding
from torchdoctor.tables import rocm

FAMILY = "gpu"
FINDS = ("gfx-override-bad",)

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"


def check(
    torch: Build | None,
    variables: Mapping[str, str],
    runtime: Runtime | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,  # noqa: ARG001 - read by way of facts
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Hold the value of the variable against the build and the GPUs."""
    value = variables.get(OVERRIDE, "").strip()
    if torch is None or gpu.kind(torch) != "rocm" or not value or gpu.works(runtime):
        return
    why = _wrong(torch, value, facts)
    if why is None:
        return
    seen = [
        Evidence(f"variables.{OVERRIDE}", value, "the environment"),
        Evidence("torch.version", torch.version, "torch/version.py"),
    ]
    said = gpu.symptom(symptoms, "hsa-not-started", "hip-no-device", "rocblas-arch-missing")
    if said:
        seen.append(Evidence("symptoms", said.text, said.source))
    tried = said is not None or isinstance(runtime, Runtime)
    cpu = expectation.accelerator == "cpu"
    yield Finding(
        "gfx-override-bad",
        "note" if cpu else "error",
        f"{OVERRIDE}={value} is set and {why}.",
        tuple(seen),
        () if cpu else (steps.unset_variable(OVERRIDE, why="Without it the GPU is what it is."),),
        confidence="certain" if tried else "likely",
    )


def _wrong(torch: Build, value: str, facts: Facts) -> str | None:
    """Return what is wrong with the value, to stand after "is set and"; None: nothing known."""
    tag, target = torch.tag or "", rocm.target_of(value)
    if tag.startswith("rocm") and not rocm.override_works(tag):
        return f"the ROCm runtime of torch {torch.version} refuses to start with it"
    if target is None:
        return "is no version such as 10.3.0"
    for own in constraints.amd_targets(facts):
        if rocm.override_hangs(own, value):
            return f"a {own} faults and hangs with it"
    have = rocm.targets(torch.public, tag)
    if have is not None and target not in have:
        return f"torch {torch.version} has no code for {target}"
    return None
