"""The ROCm build of torch has machine code for every AMD GPU that it may use.

How it shows: "hipErrorNoBinaryForGpu: Unable to find code object for all current devices", "HIP
error: invalid device function", a rocBLAS message that no TensileLibrary exists for the gfx number.

Why: a ROCm build carries code for a list of gfx targets (gfx1100 for an RX 7900), and so does the
rocBLAS beside it. Cards beside the list, such as RX 6600 and 6700 (gfx1032, gfx1031), are close
relatives of one on it; MI50 and Radeon VII (gfx906) lost rocBLAS with ROCm 6.4 and are gone from
the builds for ROCm 7.14.

The fix for a relative is HSA_OVERRIDE_GFX_VERSION, which makes the runtime take its code, before
ROCm 7.14, whose runtime refuses to start with it. Not every relative bears it: a gfx1103 hangs.
Others need the newest build with code for them. Sources: .ci/docker/manywheel/build.sh of
pytorch/pytorch; https://github.com/pytorch/pytorch/pull/179653
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import choose, constraints, effects, gpu, steps
from torchdoctor.facts import Build, Device, Expectation, Facts, Gpu, Runtime, Symptom, Unknown
from torchdoctor.model import CannotTell, Effect, Evidence, Finding, Severity, Step
from torchdoctor.tables import rocm

FAMILY = "gpu"
FINDS = ("arch-not-supported",)

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
NO_CODE = re.compile(r"invalid device function|NoBinaryForGpu|no kernel image|code object|Tensile")


def check(
    torch: Build | Unknown | None,
    runtime: Runtime | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for AMD GPUs on which a kernel failed, or whose target the build does not have."""
    if isinstance(torch, Unknown):
        yield from _by_message(torch, gpus, symptoms, facts)
        return
    if torch is None or gpu.kind(torch) != "rocm" or gpu.works(runtime):
        return
    listed: set[str] = set()
    if isinstance(runtime, Runtime):
        listed = {entry.partition(":")[0] for entry in runtime.arch_list}
        cards = [Gpu(d.name, "amd", gfx=_target(d)) for d in runtime.devices]
        bad = [c for c, d in zip(cards, runtime.devices, strict=True) if _fails(d, listed)]
        failed = [d.kernel for d in runtime.devices if d.kernel and _fails(d, listed)]
    elif isinstance(gpus, Unknown):
        raise CannotTell(f"runtime: {runtime.reason}")
    else:
        cards, failed = [card for card in gpus if card.vendor == "amd"], []
        if not isinstance(variables, Unknown) and OVERRIDE in variables:
            raise CannotTell(f"{OVERRIDE} is set, so what the GPUs take for their code is open")
        bad = [card for card in _whole(cards, facts) if _lacks(torch, card)]
        if not bad and any(_lacks(torch, card) is None for card in _whole(cards, facts)):
            raise CannotTell(f"for which AMD GPUs torch {torch.version} has code is not known")
    if not bad:
        return
    names = ", ".join(f"{c.name or 'an AMD GPU'} ({c.gfx or 'gfx unknown'})" for c in bad)
    seen = [Evidence("runtime.devices" if failed or listed else "gpus", names, "the driver")]
    seen += [Evidence("runtime.devices.kernel", said, "a kernel of ours") for said in failed]
    if said := gpu.symptom(symptoms, "hip-no-binary", "rocblas-arch-missing"):
        seen.append(Evidence("symptoms", said.text, said.source))
    severity: Severity = "error" if len(bad) == len(cards) else "warning"
    cpu = expectation.accelerator == "cpu"
    has = sorted(listed or rocm.targets(torch.public, torch.tag or "") or ())
    yield Finding(
        "arch-not-supported",
        "note" if cpu else severity,
        f"torch {torch.version} has no code that runs on {names}"
        + (f"; it has {', '.join(has)}." if has else "."),
        tuple(seen),
        () if cpu else tuple(_cures(torch, bad, cards, listed, facts)),
        confidence="certain" if isinstance(runtime, Runtime) else "likely",
    )


def _by_message(
    torch: Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Judge what HIP said where the build is not known: that it has no code for the one GPU."""
    said = gpu.of_user(symptoms, "hip-no-binary", "rocblas-arch-missing", "invalid-device-function")
    cards = () if isinstance(gpus, Unknown) else tuple(c for c in gpus if c.vendor == "amd")
    targets = {card.gfx.partition(":")[0] for card in cards if card.gfx}
    if said is None or len(targets) != 1 or (said.name[0] == "i" and "HIP" not in said.text):
        raise CannotTell(f"torch: {torch.reason}")
    names = ", ".join(f"{card.name or 'an AMD GPU'} ({card.gfx})" for card in cards if card.gfx)
    choice = choose.choose(gpu.with_cards(facts, cards), accelerator="rocm")
    why = f"This build has code for {min(targets)}."
    yield Finding(
        "arch-not-supported",
        "error",
        f"This torch has no code that runs on {names}.",
        (
            Evidence("symptoms", said.text.strip()[:300], said.source),
            Evidence("gpus", names, "the driver"),
        ),
        (steps.change_build(facts, choice, why=why),) if choice else (),
        confidence="likely",
    )


def _target(device: Device) -> str | None:
    return (device.gfx or "").partition(":")[0] or None


def _fails(device: Device, listed: set[str]) -> bool:
    if device.kernel is None:
        return False
    target = _target(device)
    return bool(NO_CODE.search(device.kernel)) or bool(listed and target and target not in listed)


def _whole(cards: list[Gpu], facts: Facts) -> list[Gpu]:
    """Return *cards* without a processor's own graphics, which torch is not meant for."""
    meant = constraints.amd_targets(facts)
    known = [gpu.with_target(card) for card in cards]
    return [c for c in known if c.gfx is None or c.gfx.partition(":")[0] in meant]


def _lacks(torch: Build, card: Gpu) -> bool | None:
    if card.gfx is None:
        return None
    runs = rocm.runs(torch.public, torch.tag or "", card.gfx.partition(":")[0])
    return None if runs is None else not runs


def _set(value: str) -> Effect:
    """Return the effect of the variable being set, also where none was known."""

    def effect(facts: Facts) -> Facts:
        known = {} if isinstance(facts.variables, Unknown) else facts.variables
        return effects.change(variables={**known, OVERRIDE: value})(facts)

    return effect


def _cures(
    torch: Build, bad: list[Gpu], cards: list[Gpu], listed: set[str], facts: Facts
) -> Iterator[Step]:
    targets = {card.gfx.partition(":")[0] for card in bad if card.gfx}
    rows = {rocm.override(torch.public, torch.tag or "", target) for target in targets}
    given = {} if isinstance(facts.variables, Unknown) else facts.variables
    unset = OVERRIDE not in given
    if unset and len(rows) == 1 and len(targets) == 1 and len(bad) == len(cards):
        (row,) = rows
        if row and (not listed or row.target in listed):
            why = f"{min(targets)} runs the code of its relative {row.target}."
            step = steps.set_variable(OVERRIDE, row.value, why=why)
            yield replace(step, effect=_set(row.value))
    asked = gpu.with_cards(facts, cards)
    choice = choose.choose(asked, accelerator="rocm", release=torch.public)
    if choice is None or choice.tag == torch.tag:
        choice = choose.choose(asked, accelerator="rocm")
    if choice and (choice.release, choice.tag) != (torch.public, torch.tag):
        names = " and ".join(sorted(targets)) or "this GPU"
        yield steps.change_build(facts, choice, why=f"This build has code for {names}.")
