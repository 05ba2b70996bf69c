"""CUDA_VISIBLE_DEVICES and its like name GPUs that exist.

How it shows: ``torch.cuda.is_available()`` is False or ``device_count()`` too small although
``nvidia-smi`` lists the GPUs; "No CUDA GPUs are available"; "invalid device ordinal" (101).

Why: the variable is a list of numbers or UUIDs. The first entry that names no GPU ends the list, so
"2" on a machine with one GPU hides all of them, as "-1" and an empty value do on purpose. It is
often set in a script, a service file or a notebook's settings and not in the shell at hand. AMD's
HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES work in the same way.

The fix is to unset it, or to name GPUs that ``nvidia-smi -L`` shows. Source: CUDA C++ Programming
Guide, CUDA environment variables; ROCm's page on GPU isolation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import gpu, steps
from torchdoctor.facts import Build, Expectation, Gpu, Symptom, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Severity

FAMILY = "gpu"
FINDS = ("cuda-visible-devices-bad",)

NAMES = {
    "CUDA_VISIBLE_DEVICES": ("nvidia", "amd"),
    "HIP_VISIBLE_DEVICES": ("amd",),
    "ROCR_VISIBLE_DEVICES": ("amd",),
}


def check(
    variables: Mapping[str, str],
    torch: Build | Unknown | None,
    gpus: tuple[Gpu, ...] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
) -> Iterator[Finding]:
    """Compare each variable with the GPUs of the maker that it is for."""
    missed = gpu.symptom(symptoms, "cuda-no-device", "cuda-invalid-device")
    kind = "cuda" if missed else None
    if isinstance(torch, Build):
        kind = gpu.kind(torch) or kind
    elif torch is None:
        return
    elif kind is None:
        raise CannotTell(f"torch: {torch.reason}")
    vendor = {"cuda": "nvidia", "rocm": "amd"}.get(kind or "")
    if vendor is None or expectation.accelerator == "cpu":
        return
    for name in (n for n, makers in NAMES.items() if vendor in makers and n in variables):
        value = variables[name]
        if isinstance(gpus, Unknown):
            raise CannotTell(f"{name} is set, but which GPUs are here is not known")
        cards = tuple(g for g in gpus if g.vendor == vendor)
        entries = [entry.strip() for entry in value.split(",")]
        if not cards or _undecided(entries, cards):
            continue
        deliberate = entries[0] in ("", "-1", "NoDevFiles")
        seen = gpu.visible(cards, variables, name)
        if len(seen) == len(entries) == len(set(entries)):
            continue
        yield _finding(name, value, len(cards), seen, expectation, deliberate=deliberate)


def _undecided(entries: list[str], cards: tuple[Gpu, ...]) -> bool:
    """Tell whether entries cannot be compared: MIG slices, or UUIDs where none are known."""
    by_name = [e for e in entries if e.startswith(("GPU-", "MIG"))]
    return any(e.startswith("MIG") for e in entries) or (
        bool(by_name) and not all(card.uuid for card in cards)
    )


def _finding(
    name: str,
    value: str,
    count: int,
    seen: tuple[Gpu, ...],
    expectation: Expectation,
    *,
    deliberate: bool,
) -> Finding:
    severity: Severity = "warning" if seen else "error"
    if deliberate and expectation.accelerator is None and expectation.gpus_at_least is None:
        severity = "note"
    named = value.count(",") + 1
    there = f"this machine has {count} GPU{'s' if count > 1 else ''}"
    repeated = len(seen) == named
    if repeated:
        fault, severity = "names a GPU twice, and CUDA then finds none", "error"
    elif deliberate:
        fault = "hides all GPUs from torch"
    elif seen:
        fault = f"names {named} GPUs and leaves {len(seen)} visible"
    else:
        fault = "names none of them, so torch sees no GPU"
    unset = steps.unset_variable(name, why=f"Without {name} torch sees every GPU.")
    return Finding(
        "cuda-visible-devices-bad",
        severity,
        f"{name}={value or '(empty)'} {fault}; {there}.",
        (
            Evidence(f"variables.{name}", value or "(empty)", "the environment"),
            Evidence("gpus", str(count), "the driver"),
        ),
        () if severity == "note" else (unset,),
    )
