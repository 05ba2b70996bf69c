"""The build of torch has machine code for every NVIDIA GPU that it may use.

How it shows: "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the
current PyTorch installation"; "CUDA error: no kernel image is available for execution on the
device" (209) at the first computation, while ``torch.cuda.is_available()`` is True.

Why: a build carries code for a list of GPU generations. RTX 50 and B200 need cu128 or newer;
Maxwell, Pascal and Volta are in the cu126 builds up to torch 2.14 and in none after it. The list
belongs to release and build together: 2.10.0+cu128 has V100, 2.11.0+cu128 has not.

A kernel that ran settles it, whatever a warning says (GB10 is warned about and works), and one that
died of another error is another check's subject. What the installed torch says of itself
(``torch.cuda.get_arch_list()``) goes before the tables.

The fix is another build of the same release, else another release; never a driver or a toolkit.
Sources: code flags in the wheels, PyTorch's build scripts, lists printed by users, per row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from torchdoctor import choose, gpu, steps
from torchdoctor.facts import (
    Build,
    Expectation,
    Facts,
    Gpu,
    Platform,
    Runtime,
    Symptom,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Severity, Step
from torchdoctor.tables import gpus as table

FAMILY = "gpu"
FINDS = ("arch-not-supported", "arch-dropped")

NO_CODE = re.compile(
    r"no kernel image|NoKernelImage|NO_BINARY_FOR_GPU|invalid device function"
    r"|\bno (?:binary|code object)\b|\b[Ee]rror \(?(?:209|98)\b"
)
UUID = re.compile(r"GPU-[0-9a-f]{8}-[0-9a-f-]{27}")


@dataclass(frozen=True, slots=True)
class Code:
    """What a build has code for, and who says so."""

    sm: tuple[int, ...]
    ptx: tuple[int, ...]
    source: str


def check(
    platform: Platform,
    torch: Build | None,
    gpus: tuple[Gpu, ...] | Unknown,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the capability of each GPU with the code in the build; a real kernel goes first."""
    if torch is None or not torch.cuda or gpu.works(runtime):
        return
    cards = _cards(gpus, runtime, symptoms, variables)
    if cards is None:
        raise CannotTell("which GPUs are here is not known")
    code = _code(torch, runtime, platform)
    bad = [card for card in cards if _runs(card, code, torch, runtime) is False]
    if not bad:
        if cards and code is None and not isinstance(runtime, Runtime):
            raise CannotTell(f"for which GPUs torch {torch.version} has code is not in the tables")
        return
    severity: Severity = "error" if len(bad) == len(cards) else "warning"
    if expectation.accelerator == "cpu":
        severity = "note"
    names = ", ".join(dict.fromkeys(f"{c.name} ({_sm(c)})" for c in bad))
    has = f"; it has {_listed(code)}" if code else ""
    seen = [Evidence("gpus", names, "the driver")]
    if code:
        seen.append(Evidence("torch", _listed(code), code.source))
    seen += _failures(runtime, symptoms)
    yield Finding(
        "arch-dropped" if _older(bad, code) else "arch-not-supported",
        severity,
        f"torch {torch.version} has no code for {names}{has}.",
        tuple(seen),
        () if severity == "note" else tuple(_cures(torch, bad, cards, facts)),
        confidence="certain" if len(seen) > 2 or isinstance(runtime, Runtime) else "likely",  # noqa: PLR2004
    )


def _cards(
    gpus: tuple[Gpu, ...] | Unknown,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
) -> tuple[Gpu, ...] | None:
    if isinstance(runtime, Runtime) and runtime.devices:
        return tuple(
            Gpu(d.name, index=d.index, capability=d.capability, memory=d.memory)
            for d in runtime.devices
        )
    if not isinstance(gpus, Unknown):
        return tuple(map(gpu.with_capability, gpu.visible(gpu.of_nvidia(gpus), variables)))
    said = gpu.symptom(symptoms, "gpu-not-in-build")
    if said is None:
        return None
    found = re.fullmatch(r"(\d+)\.(\d)", said.values.get("capability", ""))
    capability = (int(found[1]), int(found[2])) if found else None
    return (gpu.with_capability(Gpu(said.values.get("gpu", "the GPU"), capability=capability)),)


def _code(torch: Build, runtime: Runtime | Unknown, platform: Platform) -> Code | None:
    if isinstance(runtime, Runtime) and runtime.arch_list:
        found = [re.match(r"(sm|compute)_(\d+)", entry) for entry in runtime.arch_list]
        sm = tuple(int(m[2]) for m in found if m and m[1] == "sm")
        ptx = tuple(int(m[2]) for m in found if m and m[1] == "compute")
        return Code(sm, ptx, "torch.cuda.get_arch_list()")
    owner = torch.distribution
    if owner and owner.installer == "conda":
        return None  # conda's builds have lists of their own, which no table holds
    key = gpu.platform_key(platform)
    listed = table.arch_list(torch.public, torch.tag or "", key or "")
    return Code(listed.sm, listed.ptx, "the tables") if listed and listed.certain else None


def _runs(card: Gpu, code: Code | None, torch: Build, runtime: Runtime | Unknown) -> bool | None:
    """Say whether *card* runs; what its kernel did goes before what the lists say."""
    if isinstance(runtime, Runtime):
        device = next((d for d in runtime.devices if d.index == card.index), None)
        if device:
            return not (device.kernel and NO_CODE.search(device.kernel))
    if code is None or card.capability is None:
        return None
    return table.runs(code.sm, code.ptx, card.capability, cuda=torch.cuda)


def _failures(
    runtime: Runtime | Unknown, symptoms: tuple[Symptom, ...] | Unknown
) -> Iterator[Evidence]:
    if isinstance(runtime, Runtime):
        for device in runtime.devices:
            if device.kernel and NO_CODE.search(device.kernel):
                where = f"runtime.devices.{device.index}.kernel"
                yield Evidence(where, device.kernel.strip().partition("\n")[0], "a kernel of ours")
    said = gpu.symptom(symptoms, "no-kernel-image", "gpu-not-in-build")
    if said:
        yield Evidence("symptoms", said.text, said.source)


def _older(bad: list[Gpu], code: Code | None) -> bool:
    known = [c.capability[0] * 10 + c.capability[1] for c in bad if c.capability]
    return bool(known and code and code.sm) and max(known) < min(code.sm if code else ())


def _sm(card: Gpu) -> str:
    return f"sm_{card.capability[0]}{card.capability[1]}" if card.capability else "sm unknown"


def _listed(code: Code) -> str:
    return ", ".join([f"sm_{n}" for n in code.sm] + [f"compute_{n}" for n in code.ptx])


def _cures(torch: Build, bad: list[Gpu], cards: tuple[Gpu, ...], facts: Facts) -> Iterator[Step]:
    good = [card for card in cards if card not in bad]
    if good and not isinstance(facts.variables, Unknown):
        named = [_entry(card, facts) for card in good]
        yield steps.set_variable(
            "CUDA_VISIBLE_DEVICES",
            ",".join(named),
            why=f"torch then uses only the GPUs that it has code for: {good[0].name}.",
        )
    asked = gpu.filled(facts) if gpu.of_nvidia(facts.gpus) else replace(facts, gpus=cards)
    choice = choose.choose(asked, accelerator="cuda", release=torch.public)
    if choice is None or choice.tag == torch.tag:
        choice = choose.choose(asked, accelerator="cuda")
    if choice and (choice.release, choice.tag) != (torch.public, torch.tag):
        names = ", ".join(dict.fromkeys(card.name for card in bad))
        yield steps.change_build(facts, choice, why=f"This build has code for {names}.")


def _entry(card: Gpu, facts: Facts) -> str:
    """Name *card* for CUDA_VISIBLE_DEVICES: numbers of CUDA and of nvidia-smi may differ."""
    same = [g for g in gpu.of_nvidia(facts.gpus) if g.name == card.name and g.uuid]
    uuid = card.uuid or (same[0].uuid if len(same) == 1 else None)
    if uuid and UUID.fullmatch(uuid):
        return uuid
    return str(card.index if card.index is not None else 0)
