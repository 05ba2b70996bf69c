"""The build of torch has machine code for every NVIDIA GPU that it may use.

How it shows: "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the
current PyTorch installation"; "CUDA error: no kernel image is available for execution on the
device" (209) at the first computation, while ``torch.cuda.is_available()`` is True.

Why: a build carries code for a list of GPU generations. RTX 50 and B200 need cu128 or newer;
Maxwell, Pascal and Volta are in the cu126 builds up to torch 2.14 and in none after it. The list
belongs to release and build together: 2.10.0+cu128 has V100, 2.11.0+cu128 has not.

A kernel that ran settles it, whatever a warning says (GB10 is warned about and works), and one that
died of another error is another check's subject. What the installed torch says of itself
(``torch.cuda.get_arch_list()``, the list in its warning) goes before the tables; a warning alone is
believed where it names a GPU of a generation that the build does not have.

The fix is another build of the same release, else another release; never a driver or a toolkit.
Sources: code flags in the wheels, PyTorch's build scripts, lists printed by users, per row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from torchdoctor import choose, conda_steps, constraints, gpu, steps
from torchdoctor.facts import (
    Build,
    Conda,
    Expectation,
    Facts,
    Gpu,
    Platform,
    Runtime,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Severity, Step
from torchdoctor.tables import gpus as table
from torchdoctor.tables import platforms

FAMILY = "gpu"
FINDS = ("arch-not-supported", "arch-dropped")

NO_CODE = re.compile(
    r"no kernel image|NoKernelImage|NO_BINARY_FOR_GPU|invalid device function"
    r"|\bno (?:binary|code object)\b|\b[Ee]rror \(?(?:209|98)\b"
)
KEPT = 75
"""Of 7.5 and newer, code was never taken out of a build again."""
UUID = re.compile(r"GPU-[0-9a-f]{8}-[0-9a-f-]{27}")


@dataclass(frozen=True, slots=True)
class Code:
    """What a build has code for, and who says so."""

    sm: tuple[int, ...]
    ptx: tuple[int, ...]
    source: str


def check(
    platform: Platform | Unknown,
    torch: Build | Unknown | None,
    gpus: tuple[Gpu, ...] | Unknown,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the capability of each GPU with the code in the build; a real kernel goes first."""
    if torch is None or (gpu.works(runtime) and not _refused(runtime, symptoms)):
        return
    warned = gpu.symptom(symptoms, "gpu-not-in-build") is not None
    kind = gpu.kind(torch) if isinstance(torch, Build) else None
    told = warned or _refused(runtime, symptoms)
    if isinstance(torch, Unknown) and not told:
        raise CannotTell(f"torch: {torch.reason}")
    if kind not in (None, "cuda") or (kind is None and not told):
        return
    cards = _cards(gpus, runtime, symptoms, variables)
    if cards is None:
        raise CannotTell("which GPUs are here is not known")
    if isinstance(platform, Platform) and platform.jetson:
        cards = tuple(_of_jetson(card, facts) for card in cards)
    code = _code_in(symptoms) or _code(torch, runtime, platform, facts.conda)
    bad = [card for card in cards if _runs(card, code, torch, runtime, symptoms) is False]
    name = f"torch {torch.version}" if isinstance(torch, Build) else "This torch"
    if not bad:
        tried = isinstance(runtime, Runtime) and bool(runtime.devices)
        if cards and code is None and not tried:
            raise CannotTell(f"for which GPUs {name} has code is not in the tables")
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
        "arch-dropped" if _older(bad, code, symptoms) else "arch-not-supported",
        severity,
        f"{name} has no code for {names}{has}.",
        tuple(seen),
        () if severity == "note" else tuple(_cures(torch, bad, cards, facts)),
        confidence="certain" if len(seen) > 2 or isinstance(runtime, Runtime) else "likely",  # noqa: PLR2004
    )


def _refused(runtime: Runtime | Unknown, symptoms: tuple[Symptom, ...] | Unknown) -> bool:
    """Tell whether a kernel of the user's failed for want of code, and torch printed what it has.

    For a report: no kernel of ours was tried then, and that none failed says nothing.
    """
    listed = isinstance(runtime, Runtime) and bool(runtime.arch_list)
    return listed and gpu.of_user(symptoms, "no-kernel-image") is not None


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
    capability = _pair(said.values.get("capability", ""))
    return (gpu.with_capability(Gpu(said.values.get("gpu", "the GPU"), capability=capability)),)


def _of_jetson(card: Gpu, facts: Facts) -> Gpu:
    """Return the GPU of a Jetson with the capability that its JetPack tells, where it is one."""
    row = constraints.jetpack(facts)
    if card.capability or row is None or len(row.capabilities) != 1:
        return card
    return replace(card, name=card.name or "Jetson", capability=row.capabilities[0])


def _code_in(symptoms: tuple[Symptom, ...] | Unknown) -> Code | None:
    """Return the list that torch printed with its warning."""
    for symptom in _warnings(symptoms):
        found = re.findall(r"\b(sm|compute)_(\d+)", symptom.values.get("built", ""))
        if found:
            sm = tuple(int(number) for kind, number in found if kind == "sm")
            ptx = tuple(int(number) for kind, number in found if kind == "compute")
            return Code(sm, ptx, "a warning of torch")
    return None


def _warnings(symptoms: tuple[Symptom, ...] | Unknown) -> tuple[Symptom, ...]:
    known = items_of(symptoms)
    return tuple(s for s in known if s.name == "gpu-not-in-build")


def _code(
    torch: Build | Unknown,
    runtime: Runtime | Unknown,
    platform: Platform | Unknown,
    conda: Conda | Unknown | None,
) -> Code | None:
    if isinstance(runtime, Runtime) and runtime.arch_list:
        found = [re.match(r"(sm|compute)_(\d+)", entry) for entry in runtime.arch_list]
        sm = tuple(int(m[2]) for m in found if m and m[1] == "sm")
        ptx = tuple(int(m[2]) for m in found if m and m[1] == "compute")
        return Code(sm, ptx, "torch.cuda.get_arch_list()")
    if isinstance(torch, Unknown):
        return None
    owner, key = torch.distribution, gpu.platform_key(platform) or ""
    if owner and owner.installer == "conda":
        return _code_of_conda(conda, key)
    if isinstance(platform, Platform) and platform.jetson and "+" not in torch.version:
        return None  # NVIDIA's own wheels for a Jetson, whose lists no table holds
    tag = torch.tag or ""
    known = [table.arch_list(torch.public, tag, k) for k in gpu.platform_keys(platform)]
    lists = [one for one in known if one]
    if not any(one.certain for one in lists):
        return None
    # Where the platform is not known in full, what any of its builds has counts.
    targets = tuple(sorted({target for one in lists for target in one.sm}))
    virtual = tuple(sorted({target for one in lists for target in one.ptx}))
    return Code(targets, virtual, "the tables")


def _code_of_conda(conda: Conda | Unknown | None, key: str) -> Code | None:
    """Return what conda-forge's build has; no table holds the lists of other channels."""
    record = conda.get("pytorch") if isinstance(conda, Conda) else None
    if record is None or conda_steps.channel(record.channel) != "conda-forge":
        return None
    built = platforms.conda_build(record.build)
    archs = platforms.conda_archs(built.cuda, key) if built and built.cuda else None
    return Code(archs, archs[-1:], f"conda-forge, {record.build}") if archs else None


def _runs(
    card: Gpu,
    code: Code | None,
    torch: Build | Unknown,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
) -> bool | None:
    """Say whether *card* runs; what its kernel did goes before what the lists say."""
    if isinstance(runtime, Runtime):
        device = next((d for d in runtime.devices if d.index == card.index), None)
        if device and (device.kernel or not _refused(runtime, symptoms)):
            return not (device.kernel and NO_CODE.search(device.kernel))
    if card.capability is None:
        return None
    if code is None:
        return _by_warning(card.capability, symptoms)
    cuda = gpu.cuda(torch) if isinstance(torch, Build) else None
    runs = table.runs(code.sm, code.ptx, card.capability, cuda=cuda)
    return False if runs is None and _refused(runtime, symptoms) else runs


def _by_warning(
    capability: tuple[int, int], symptoms: tuple[Symptom, ...] | Unknown
) -> bool | None:
    """Say False where torch warned of this GPU and has no code of its generation.

    The warning that gives a range is printed for a newer GPU of a generation that works, too.
    """
    dotted = f"{capability[0]}.{capability[1]}"
    for symptom in (s for s in _warnings(symptoms) if s.values.get("capability") == dotted):
        low, high = (_pair(symptom.values.get(end, "")) for end in ("lowest", "highest"))
        if low is None or high is None:
            return False
        if capability < low or capability[0] > high[0]:
            return False
    return None


def _pair(text: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d+)\.(\d)", text)
    return (int(found[1]), int(found[2])) if found else None


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


def _older(bad: list[Gpu], code: Code | None, symptoms: tuple[Symptom, ...] | Unknown) -> bool:
    known = [c.capability[0] * 10 + c.capability[1] for c in bad if c.capability]
    if code and code.sm:
        oldest = min(code.sm)
    else:
        said = [pair for s in _warnings(symptoms) if (pair := _pair(s.values.get("lowest", "")))]
        oldest = said[0][0] * 10 + said[0][1] if said else KEPT
    return bool(known) and max(known) < oldest


def _sm(card: Gpu) -> str:
    return f"sm_{card.capability[0]}{card.capability[1]}" if card.capability else "sm unknown"


def _listed(code: Code) -> str:
    return ", ".join([f"sm_{n}" for n in code.sm] + [f"compute_{n}" for n in code.ptx])


def _cures(
    torch: Build | Unknown, bad: list[Gpu], cards: tuple[Gpu, ...], facts: Facts
) -> Iterator[Step]:
    good = [card for card in cards if card not in bad]
    if good and not isinstance(facts.variables, Unknown):
        named = [_entry(card, facts) for card in good]
        yield steps.set_variable(
            "CUDA_VISIBLE_DEVICES",
            ",".join(named),
            why=f"torch then uses only the GPUs that it has code for: {good[0].name}.",
        )
    asked = gpu.filled(facts) if gpu.of_nvidia(facts.gpus) else facts.but(gpus=cards)
    now = torch if isinstance(torch, Build) else None
    choice = choose.choose(asked, accelerator="cuda", release=now.public) if now else None
    if choice is None or (now and choice.tag == now.tag):
        choice = choose.choose(asked, accelerator="cuda")
    yield from steps.jetson_wheels(facts)
    if choice and (now is None or (choice.release, choice.tag) != (now.public, now.tag)):
        names = ", ".join(dict.fromkeys(card.name for card in bad))
        yield steps.change_build(facts, choice, why=f"This build has code for {names}.")


def _entry(card: Gpu, facts: Facts) -> str:
    """Name *card* for CUDA_VISIBLE_DEVICES: numbers of CUDA and of nvidia-smi may differ."""
    same = [g for g in gpu.of_nvidia(facts.gpus) if g.name == card.name and g.uuid]
    uuid = card.uuid or (same[0].uuid if len(same) == 1 else None)
    if uuid and UUID.fullmatch(uuid):
        return uuid
    return str(card.index if card.index is not None else 0)
