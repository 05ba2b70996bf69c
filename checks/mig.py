"""A process asks for no more MIG slices than one.

How it shows: two slices are made, ``torch.cuda.device_count()`` says 2 and the second fails with
"device >= 0 && device < num_gpus INTERNAL ASSERT FAILED", or it says 1 where two were expected.

Why: CUDA gives one process one MIG slice, the first that CUDA_VISIBLE_DEVICES names; torch counts
devices by another way and may count more. One process cannot use several slices together, nor can
DDP with NCCL between slices of one GPU.

The fix is one process for each slice, each with the UUID of its own in CUDA_VISIBLE_DEVICES
(``nvidia-smi -L`` lists them), or the whole GPU without MIG. Sources: NVIDIA's MIG User Guide;
https://github.com/pytorch/pytorch/issues/130181
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import Build, Expectation, Facts, Gpu, Symptom, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Severity, Step

FAMILY = "gpu"
FINDS = ("mig-single-instance",)


def check(
    gpus: tuple[Gpu, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    torch: Build | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for several slices named at once, and for more GPUs expected than one slice."""
    if torch is None or gpu.kind(torch) != "cuda":
        return
    if isinstance(gpus, Unknown):
        raise CannotTell(f"gpus: {gpus.reason}")
    sliced = [card for card in gpu.of_nvidia(gpus) if card.mig]
    value = "" if isinstance(variables, Unknown) else variables.get("CUDA_VISIBLE_DEVICES", "")
    named = [e.strip() for e in value.split(",") if e.strip().startswith("MIG")]
    counted = gpu.symptom(symptoms, "device-count-mismatch")
    too_few = (expectation.gpus_at_least or 0) > 1
    if not (len(named) > 1 or (sliced and (counted or too_few))):
        return
    severity: Severity = "error" if counted or too_few else "warning"
    seen = [Evidence("gpus.mig", f"on, on {len(sliced)} GPUs", "the driver")]
    if named:
        seen.append(Evidence("variables.CUDA_VISIBLE_DEVICES", value, "the environment"))
    if counted:
        seen.append(Evidence("symptoms", counted.text, counted.source))
    asks = f"{len(named)} MIG slices are named" if named else "MIG is on"
    wants = f" and {expectation.gpus_at_least} GPUs are expected" if too_few else ""
    yield Finding(
        "mig-single-instance",
        severity,
        f"{asks}{wants}, but one process can use one MIG slice only.",
        tuple(seen),
        tuple(_cures(named, sliced, facts, too_few=too_few)),
    )


def _cures(named: list[str], sliced: list[Gpu], facts: Facts, *, too_few: bool) -> Iterator[Step]:
    if len(named) > 1 and not too_few:
        yield steps.set_variable(
            "CUDA_VISIBLE_DEVICES",
            named[0],
            why="Each process gets one slice; start one process for each.",
        )
    if sliced and not isinstance(facts.gpus, Unknown):
        whole = effects.turned("gpus", lambda now: tuple(replace(card, mig=False) for card in now))
        unset = effects.without_variable("CUDA_VISIBLE_DEVICES")
        yield steps.by_hand(
            "switch-mig-off",
            "Switch MIG off, with no program on the GPUs, and unset CUDA_VISIBLE_DEVICES",
            why="The process then gets whole GPUs.",
            layer=Layer.HARDWARE,
            cost=steps.COMPANION,
            effect=effects.then(whole, unset) if named else whole,
            bash=("sudo nvidia-smi -mig 0",),
            admin=True,
        )
