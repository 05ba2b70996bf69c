"""The installed build of torch is one for the GPU that is here.

How it shows: ``torch.cuda.is_available()`` is False although ``nvidia-smi`` works; "Torch not
compiled with CUDA enabled"; ``torch.version.cuda`` is None; the version ends in +cpu.

Why: plain ``pip install torch`` brings the CPU build on Windows and, up to 2.10, on ARM Linux;
conda falls back to a CPU build when it cannot solve for CUDA; another package's requirement may
have replaced the GPU build. A CUDA build beside AMD or Intel graphics runs on the CPU only.

A program says it, too: "Torch not compiled with CUDA enabled"; an extension that was built for the
CUDA build of the very release that is here as +cpu (xFormers: "you have 2.1.2+cpu").

Not to be confused with a driver fault: the driver answers here, only the build has no use for it.
A CPU build on a machine without a GPU, and any build under ``--expect cpu``, is right as it is.

The fix is the same release in another build, with its label spelled out: a plain reinstall or
``-U`` changes nothing. Sources: PyTorch's build matrices, its .ci/docker/manywheel/build.sh for the
AMD targets; https://github.com/pytorch/pytorch/issues/168065
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import choose, gpu, steps
from torchdoctor.facts import (
    Build,
    DeviceNode,
    Driver,
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
from torchdoctor.tables import releases

FAMILY = "build"
FINDS = ("cpu-only-build", "wrong-accelerator-build")

CARDS = frozenset(f"gfx{n}" for n in (908, "90a", 942, 950, 1030, 1100, 1101, 1102, 1200, 1201))
"""AMD targets of the rocm wheels that are cards; graphics inside a processor only earn a note."""

MAKERS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
RUNS_ON = {"cuda": "nvidia", "rocm": "amd", "xpu": "intel"}


def check(
    platform: Platform | Unknown,
    torch: Build | Unknown | None,
    gpus: tuple[Gpu, ...] | Unknown,
    driver: Driver | Unknown | None,
    device_nodes: tuple[DeviceNode, ...] | Unknown,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare what the build is for with the GPUs of the machine, then read the messages."""
    if torch is None or expectation.accelerator == "cpu" or gpu.available(runtime):
        return
    if isinstance(platform, Platform) and platform.system == "darwin":
        return
    lacking = [fact for fact in (torch, gpus) if isinstance(fact, Unknown)]
    found: list[Finding] = []
    if isinstance(torch, Build) and not isinstance(gpus, Unknown):
        found = list(_by_facts(torch, gpus, driver, device_nodes, facts))
    found = found or list(_by_message(torch, gpus, symptoms, facts))
    found = found or list(_by_cuda(torch, facts))
    yield from found
    if lacking and not found and _message(symptoms) is None:
        raise CannotTell(lacking[0].reason)


def _message(symptoms: tuple[Symptom, ...] | Unknown) -> Symptom | None:
    """Return what a program of the user, or an extension, said of a CPU build."""
    if said := gpu.of_user(symptoms, "not-compiled-with-cuda"):
        return said
    known = items_of(symptoms)
    return next((s for s in known if s.name == "extension-built-for-other" and _is_cpu(s)), None)


def _is_cpu(symptom: Symptom) -> bool:
    """Tell whether an extension of CUDA names the same release, as a CPU build, as what is here."""
    built, have = symptom.values.get("built", ""), symptom.values.get("have", "")
    release, _, tag = built.partition("+")
    return bool(tag.startswith("cu") and have == f"{release}+cpu")


def _by_message(
    torch: Build | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    said = _message(symptoms)
    kind = gpu.kind(torch) if isinstance(torch, Build) else None
    no_card = not isinstance(gpus, Unknown) and not any(g.vendor in RUNS_ON.values() for g in gpus)
    if said is None or kind not in (None, "cpu") or no_card:
        return
    built, have = said.values.get("built", ""), said.values.get("have", "")
    name = f"torch {torch.version}" if isinstance(torch, Build) else f"torch {have}".strip()
    who = f"{said.values['package']} is built for {built}" if built else "a program asked for CUDA"
    release, tag = built.partition("+")[::2]
    choice: choose.Choice | None
    if release and releases.torch_release(release):
        choice = choose.at(facts, release, tag)
    else:
        now = torch.public if isinstance(torch, Build) else None
        choice = choose.choose(facts, accelerator="cuda", release=now) if now else None
        choice = choice or choose.choose(facts, accelerator="cuda")
    yield Finding(
        "cpu-only-build",
        "error",
        f"{name} is a CPU build, and {who}.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (steps.change_build(facts, choice, why="This is a build with CUDA."),) if choice else (),
        confidence="likely",
    )


def _by_cuda(torch: Build | Unknown, facts: Facts) -> Iterator[Finding]:
    """Judge a CPU build beside a version of CUDA that was written down: of a driver or a toolkit.

    Which of them it is of is not told; a machine without an NVIDIA GPU has neither. It counts only
    where nothing else is known of GPUs and driver.
    """
    said = gpu.of_user(facts.symptoms, "cuda-told")
    known = not (isinstance(facts.gpus, Unknown) and isinstance(facts.driver, Unknown))
    if said is None or known or isinstance(torch, Unknown) or gpu.kind(torch) != "cpu":
        return
    choice = choose.choose(facts, accelerator="cuda", release=torch.public)
    yield Finding(
        "cpu-only-build",
        "warning",
        f"torch {torch.version} is a CPU build, and CUDA {said.values['cuda']} (of a driver or a"
        " toolkit) is on this machine.",
        (
            Evidence("torch.tag", torch.tag or "cpu", "torch/version.py"),
            Evidence("symptoms", said.text.strip()[:300], said.source),
        ),
        (steps.change_build(facts, choice, why="This is a build with CUDA."),) if choice else (),
        confidence="likely",
    )


def _by_facts(
    torch: Build,
    gpus: tuple[Gpu, ...],
    driver: Driver | Unknown | None,
    device_nodes: tuple[DeviceNode, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    if not gpus:
        return
    expectation, kind = facts.expectation, gpu.kind(torch)
    if kind is None:
        raise CannotTell(f"what kind of build torch {torch.version} is cannot be told")
    for better, cards in _candidates(gpus, driver, device_nodes):
        if kind == better:
            return
        yield from _finding(torch, kind, better, cards, facts)
        return
    if kind == "cpu" and gpu.of_nvidia(gpus) and gpu.silent(driver):
        raise CannotTell("the driver does not answer, so whether its GPUs are usable is not known")
    if kind in ("cuda", "rocm") and RUNS_ON[kind] not in {g.vendor for g in gpus}:
        yield _other_maker(torch, kind, gpus, expectation)


def _candidates(
    gpus: tuple[Gpu, ...],
    driver: Driver | Unknown | None,
    nodes: tuple[DeviceNode, ...] | Unknown,
) -> Iterator[tuple[choose.Accelerator, list[Gpu]]]:
    """Give what torch could use here: usable GPUs only, the likeliest first."""
    cards = list(gpu.of_nvidia(gpus))
    # Where the driver was not asked, its numbers show that it listed the cards.
    listed = isinstance(driver, Unknown) and any(c.index is not None or c.uuid for c in cards)
    if cards and (listed or gpu.answers(driver)):
        yield "cuda", cards
    compute = not isinstance(nodes, Unknown) and any(n.path == "/dev/kfd" for n in nodes)
    # rocminfo names targets only where it could open /dev/kfd.
    compute = compute or (isinstance(nodes, Unknown) and any(g.gfx for g in gpus))
    if compute and (cards := [g for g in gpus if g.vendor == "amd"]):
        yield "rocm", cards


def _finding(
    torch: Build, kind: str, better: choose.Accelerator, cards: list[Gpu], facts: Facts
) -> Iterator[Finding]:
    choice = choose.choose(gpu.filled(facts), accelerator=better)
    expectation = facts.expectation
    expected = better == "cuda" and gpu.expects_cuda(expectation)
    severity: Severity = "warning"
    if expected or expectation.accelerator == better:
        severity = "error"
    elif better == "rocm" and not any((g.gfx or table.gfx_of(g.name)) in CARDS for g in cards):
        severity = "note"
    elif choice is None and not _jetson(facts):
        severity = "note"  # a GPU or a driver that no build known serves is not usable
    names = ", ".join(dict.fromkeys(g.name for g in cards))
    what = "a CPU build" if kind == "cpu" else f"a build for {MAKERS.get(RUNS_ON[kind])} GPUs"
    yield Finding(
        "cpu-only-build" if kind == "cpu" else "wrong-accelerator-build",
        severity,
        f"torch {torch.version} is {what}, so it cannot use the {names} of this machine.",
        (
            Evidence("torch.tag", torch.tag or kind, "torch/version.py"),
            Evidence("gpus", names, "the driver" if better == "cuda" else "the PCI bus, /dev/kfd"),
        ),
        () if severity == "note" else tuple(_cures(choice, names, facts)),
        confidence="certain" if better == "cuda" else "possible",
    )


def _jetson(facts: Facts) -> bool:
    return isinstance(facts.platform, Platform) and facts.platform.jetson


def _cures(choice: choose.Choice | None, names: str, facts: Facts) -> Iterator[Step]:
    yield from steps.jetson_wheels(facts)
    if choice:
        why = f"This build has code for {names}."
        yield steps.change_build(facts, choice, why=why)


def _other_maker(
    torch: Build, kind: str, gpus: tuple[Gpu, ...], expectation: Expectation
) -> Finding:
    names = ", ".join(dict.fromkeys(g.name for g in gpus))
    here = " and ".join(sorted({MAKERS.get(g.vendor, g.vendor) for g in gpus}))
    wants_other = expectation.accelerator in ("rocm", "xpu", "cuda")
    return Finding(
        "wrong-accelerator-build",
        "error" if wants_other and expectation.accelerator != kind else "note",
        f"torch {torch.version} is a build for {MAKERS[RUNS_ON[kind]]} GPUs; here is only"
        f" {here} graphics ({names}), so it runs on the CPU.",
        (
            Evidence("torch.tag", torch.tag or kind, "torch/version.py"),
            Evidence("gpus", names, "the PCI bus"),
        ),
    )
