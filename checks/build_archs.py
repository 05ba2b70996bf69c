"""TORCH_CUDA_ARCH_LIST names what torch and nvcc know, and the GPU that is here.

How it shows: a build ends in "Unknown CUDA arch (8.0,8.6) or GPU not supported", or in "nvcc
fatal : Unsupported gpu architecture 'compute_120'". Where the list leaves out the GPU, the build
goes well, and the extension raises "no kernel image is available for execution on the device".

Why: torch hands what the variable lists to nvcc, one target for each entry: 8.6 is sm_86, 9.0+PTX
also keeps what the driver can compile for newer GPUs. Entries are parted by ; or blanks, never by
commas; sm_86 and 86 are no entries. Each CUDA knows the GPUs of its time: 12.0 needs CUDA 12.8, and
CUDA 13 has dropped all below 7.5. Images and build scripts set it for other machines.

Not to be confused with a torch that has no code for the GPU (arch-not-supported): then plain
computations fail, too. Where the variable is not set, torch goes by the GPUs that it sees.

The fix is the list without what is unknown and with the GPU that is here, or no list at all. It is
judged with ``check --profile build``, and where a build said it.

Sources: torch/utils/cpp_extension.py, _get_cuda_arch_flags; what ptxas and nvcc of each CUDA list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torchdoctor import building, effects, gpu, steps
from torchdoctor.building import LIST, Entry
from torchdoctor.facts import (
    Build,
    BuildTools,
    Expectation,
    Gpu,
    Symptom,
    Toolkit,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step
from torchdoctor.tables import gpus as table

FAMILY = "build"
FINDS = ("arch-list-not-buildable", "arch-list-misses-gpu")
AFTER = ("build-toolkit",)

NAME = "arch-list-refused"


def check(
    expectation: Expectation,
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    torch: Build | Unknown | None,
    build_tools: BuildTools | Unknown,
    toolkits: tuple[Toolkit, ...] | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
) -> Iterator[Finding]:
    """Read what torch said of the list, else take it apart as torch does."""
    if said := gpu.symptom(symptoms, NAME):
        yield _said(said)
        return
    if not building.asked(expectation):
        return
    if isinstance(variables, Unknown):
        raise CannotTell(variables.reason)
    listed = building.entries(variables)
    if not listed or (isinstance(torch, Build) and building.cuda(torch) is None):
        return
    cards = building.cards(gpus)
    if strange := [entry for entry in listed if not _takes(build_tools, entry)]:
        says = f"torch does not know {strange[0].text!r} of {LIST}={variables[LIST]}"
        says += ": entries are like 8.6 or 9.0+PTX, parted by ; or blanks."
        yield _refused(says, variables[LIST], [e for e in listed if e not in strange], cards)
        return
    nvcc = building.nvcc(build_tools, toolkits)
    release = nvcc.release if isinstance(nvcc, Toolkit) else None
    known = building.targets(build_tools, release) if release else None
    unknown = [e for e in listed if known and not building.makes(known, e.target)]
    if unknown:
        says = f"nvcc of CUDA {release} makes no code for {unknown[0].arch}, which {LIST} lists."
        yield _refused(says, variables[LIST], [e for e in listed if e not in unknown], cards)
        return
    yield from _left_out(listed, variables[LIST], cards, release)
    if known is None:
        raise CannotTell("nvcc's release is not known, or newer than the tables")


def _takes(tools: BuildTools | Unknown, entry: Entry) -> bool:
    """Tell whether torch takes *entry*; what it lists itself decides, where that is known."""
    if entry.arch is None or isinstance(tools, Unknown) or isinstance(tools.arch_names, Unknown):
        return entry.arch is not None
    return entry.arch in tools.arch_names


def _said(said: Symptom) -> Finding:
    entry = said.values.get("arch", "")
    return Finding(
        "arch-list-not-buildable",
        "error",
        f"torch does not know {entry!r} of {LIST}: entries are like 8.6 or 9.0+PTX, parted by ; or"
        " blanks, and a newer GPU needs a newer torch.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (_unset() if building.entry(entry).arch is None else _leave_out(entry),),
    )


def _leave_out(entry: str) -> Step:
    return steps.by_hand(
        "leave-out-of-arch-list",
        f"Take {entry} out of {LIST}, or install a torch that knows it; where the variable is not"
        " set, it is the GPU that this torch is too old for",
        why="Each torch knows the GPUs of its time.",
        layer=Layer.VARIABLES,
        cost=steps.SMALL,
        effect=effects.settled(NAME),
    )


def _unset() -> Step:
    return steps.compiling.with_effect(
        steps.unset_variable(LIST, why="torch then goes by the GPUs that it sees."),
        effects.then(effects.without_variable(LIST), effects.settled(NAME)),
    )


def _refused(says: str, value: str, kept: Sequence[Entry], cards: Sequence[Gpu]) -> Finding:
    return Finding(
        "arch-list-not-buildable",
        "error",
        says,
        (Evidence(f"variables.{LIST}", value, "environment"),),
        tuple(_cures(kept, cards)),
    )


def _left_out(
    listed: Sequence[Entry], value: str, cards: Sequence[Gpu], release: str | None
) -> Iterator[Finding]:
    for card in cards:
        if _covers(listed, card, release) is False:
            yield Finding(
                "arch-list-misses-gpu",
                "warning",
                f"{LIST}={value} leaves out {card.name} ({_arch(card)}), so what is compiled has no"
                " code for it.",
                (
                    Evidence(f"variables.{LIST}", value, "environment"),
                    Evidence("gpus", f"{card.name} {_arch(card)}", "driver"),
                ),
                tuple(_cures(listed, cards)),
            )
            return


def _covers(listed: Sequence[Entry], card: Gpu, release: str | None) -> bool | None:
    """Tell whether what *listed* makes runs on *card*. PTX does, of whatever older GPU."""
    assert card.capability is not None
    number = card.capability[0] * 10 + card.capability[1]
    plain = [int(entry.target) for entry in listed if entry.target.isdecimal()]
    exact = any(e.target.rstrip("af") == str(number) for e in listed)
    ptx = any(e.ptx and e.target.isdecimal() and int(e.target) <= number for e in listed)
    return exact or ptx or table.runs(plain, (), card.capability, cuda=release)


def _arch(card: Gpu) -> str:
    assert card.capability is not None
    return f"{card.capability[0]}.{card.capability[1]}"


def _cures(kept: Sequence[Entry], cards: Sequence[Gpu]) -> Iterator[Step]:
    missing = [_arch(card) for card in cards if not _covers(kept, card, None)]
    names = [entry.text for entry in kept]
    if names or missing:
        value = ";".join(dict.fromkeys((*names, *missing)))
        yield steps.set_variable(LIST, value, why="It is then built for what is here, and known.")
    if cards:
        yield _unset()
