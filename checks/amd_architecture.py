"""The ROCm build of torch has machine code for every AMD GPU that it may use.

How it shows: "hipErrorNoBinaryForGpu: Unable to find code object for all current devices", "HIP
error: invalid device function", a rocBLAS message that no TensileLibrary exists for the gfx number.

Why: a ROCm build carries code for a list of gfx targets (gfx1100 for an RX 7900). Cards beside the
list, such as RX 6600 and 6700 (gfx1032, gfx1031), are close relatives of one on it; MI50 and Radeon
VII (gfx906) are gone from the builds for ROCm 7.14.

The fix for a relative is HSA_OVERRIDE_GFX_VERSION, which makes the runtime take its code; others
need an older release. Source: .ci/docker/manywheel/build.sh of pytorch/pytorch; ROCm's lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from torchdoctor import gpu, steps
from torchdoctor.facts import Build, Device, Expectation, Runtime, Symptom, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Severity, Step

FAMILY = "gpu"
FINDS = ("arch-not-supported",)

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
RELATIVES = {"gfx103": ("gfx1030", "10.3.0"), "gfx110": ("gfx1100", "11.0.0")}
NO_CODE = re.compile(r"invalid device function|NoBinaryForGpu|no kernel image|code object|Tensile")


def check(
    torch: Build | None,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    expectation: Expectation,
) -> Iterator[Finding]:
    """Look for AMD GPUs on which a kernel failed or whose target the build does not list."""
    if torch is None or not torch.hip or gpu.works(runtime):
        return
    if isinstance(runtime, Unknown):
        raise CannotTell(f"runtime: {runtime.reason}")
    listed = {entry.partition(":")[0] for entry in runtime.arch_list}
    bad = [device for device in runtime.devices if _without_code(device, listed)]
    if not bad:
        return
    names = ", ".join(f"{d.name} ({d.gfx or 'gfx unknown'})" for d in bad)
    seen = [Evidence("runtime.devices", names, "torch.cuda")]
    seen += [
        Evidence("runtime.devices.kernel", d.kernel, "a kernel of ours") for d in bad if d.kernel
    ]
    if said := gpu.symptom(symptoms, "hip-no-binary", "rocblas-arch-missing"):
        seen.append(Evidence("symptoms", said.text, said.source))
    relative = RELATIVES.get((bad[0].gfx or "")[:6])
    unset = not isinstance(variables, Unknown) and OVERRIDE not in variables
    cure: tuple[Step, ...] = ()
    if relative and relative[0] in listed and unset and {d.gfx for d in bad} == {bad[0].gfx}:
        why = f"{bad[0].gfx} runs the code of its relative {relative[0]}."
        cure = (steps.set_variable(OVERRIDE, relative[1], why=why),)
    severity: Severity = "error" if len(bad) == len(runtime.devices) else "warning"
    if expectation.accelerator == "cpu":
        severity, cure = "note", ()
    yield Finding(
        "arch-not-supported",
        severity,
        f"torch {torch.version} has no code for {names}; it has {', '.join(sorted(listed))}.",
        tuple(seen),
        cure,
    )


def _without_code(device: Device, listed: set[str]) -> bool:
    if device.kernel is None:
        return False
    target = (device.gfx or "").partition(":")[0]
    return bool(NO_CODE.search(device.kernel)) or bool(listed and target and target not in listed)
