"""The processor knows the instructions that torch was compiled with.

How it shows: "Illegal instruction (core dumped)" (SIGILL, exit code 132 or -4; 0xC000001D on
Windows) when torch is imported or computes for the first time, and no Python error at all.

Why: torch picks its fast code by looking at the processor, but some builds use a newer instruction
before they look: x86 processors without AVX or AVX2 (old Celerons, virtual machines with a plain
"kvm64" processor), and ARMv8.0 (Raspberry Pi 4, Cortex-A53/A57/A72), which lacks the LSE atomics
that the aarch64 wheels of 2.4.0 and 2.10.0 use. A missing AVX2 alone, without a crash, is harmless.

The fix is a release without the mistake, or the host's own processor model in a virtual machine.
Sources: https://github.com/pytorch/pytorch/issues/132032,
https://github.com/pytorch/pytorch/issues/174344, https://github.com/pytorch/pytorch/issues/37577
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import choose, effects, shells, steps
from torchdoctor.facts import Build, Cpu, Facts, ImportTrial, Platform, Symptom, Unknown, items_of
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step

FAMILY = "system"
FINDS = ("cpu-instruction-missing",)

WITHOUT_LSE = {"2.4.0": "2.4.1", "2.10.0": "2.11.0"}
"""aarch64 releases that need LSE, and the one after each that does not."""

NEEDED = {"x86": ("avx", "avx2"), "arm": ("atomics",)}
NAMES = {"avx": "AVX", "avx2": "AVX2", "atomics": "the LSE atomics of ARMv8.1"}
CODES = (132, -4, 0xC000001D, 0xC000001D - 2**32)


def check(
    platform: Platform | Unknown,
    cpu: Cpu,
    trial: ImportTrial | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    torch: Build | Unknown | None,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for missing instruction sets after an illegal instruction."""
    died = isinstance(trial, ImportTrial) and _illegal(trial)
    said = None if isinstance(trial, ImportTrial) else _told(symptoms, torch)
    if not died and not said:
        if isinstance(trial, Unknown):
            raise CannotTell(trial.reason)
        return
    if not cpu.flags:
        raise CannotTell("the instruction sets of the processor are not known")
    lacking = [flag for flag in _needed(platform, cpu) if flag not in cpu.flags]
    if not lacking:
        return
    tried = trial if isinstance(trial, ImportTrial) else None
    version = torch.version if isinstance(torch, Build) else tried and tried.version
    stage = f" in stage {tried.stage}" if tried else ""
    words = " and ".join(NAMES[flag] for flag in lacking)
    yield Finding(
        "cpu-instruction-missing",
        "error",
        f"torch {version or '(version unknown)'} died of an illegal instruction{stage};"
        f" {cpu.model or 'the processor'} lacks {words}.",
        (
            _seen(tried, said),
            Evidence("cpu.flags", f"without {', '.join(lacking)}", "the system"),
        ),
        tuple(_cures(lacking, cpu, torch, facts)),
        confidence="certain" if _release(torch) in WITHOUT_LSE else "likely",
        because_of=("interpreter-emulated",),
    )


def _needed(platform: Platform | Unknown, cpu: Cpu) -> tuple[str, ...]:
    machine = platform.machine.lower() if isinstance(platform, Platform) else ""
    if machine in ("x86_64", "amd64", "i686") or (not machine and "sse2" in cpu.flags):
        return NEEDED["x86"]
    if machine in ("aarch64", "arm64") or (not machine and "asimd" in cpu.flags):
        return NEEDED["arm"]
    raise CannotTell(f"what torch needs of a {machine or 'nameless'} processor is not known")


def _illegal(trial: ImportTrial) -> bool:
    code = (trial.signal or "").upper()
    return trial.outcome == "died" and (
        code in ("SIGILL", "0XC000001D") or trial.exit_code in CODES
    )


def _told(symptoms: tuple[Symptom, ...] | Unknown, torch: Build | Unknown | None) -> Symptom | None:
    """Return that a process of the user with torch in it ended so, where none of ours was tried."""
    for said in items_of(symptoms):
        illegal = said.name == "fatal-signal" and said.values.get("kind") == "Illegal instruction"
        if illegal and (isinstance(torch, Build) or "torch" in said.text):
            return said
    return None


def _seen(trial: ImportTrial | None, said: Symptom | None) -> Evidence:
    if said:
        return Evidence("symptoms", said.text.strip()[:300], said.source)
    what = trial.signal or str(trial.exit_code) if trial else ""
    return Evidence("trial.signal", what, "import torch")


def _release(torch: Build | Unknown | None) -> str:
    return torch.public if isinstance(torch, Build) else ""


def _cures(
    lacking: list[str], cpu: Cpu, torch: Build | Unknown | None, facts: Facts
) -> Iterator[Step]:
    mended = WITHOUT_LSE.get(_release(torch)) if "atomics" in lacking else None
    if mended and (choice := choose.choose(facts, release=mended)):
        why = f"torch {mended} was built without the instructions that {_release(torch)} took."
        yield steps.change_build(facts, choice, why=why)
    if "hypervisor" in cpu.flags:
        yield steps.by_hand(
            "pass-the-host-processor-through",
            "Give this virtual machine the host's processor model (QEMU: -cpu host; Proxmox and"
            " libvirt: type host), then start it again",
            why="The virtual machine hides instructions that the real processor may have.",
            layer=Layer.HARDWARE,
            cost=steps.REBOOT,
            effect=effects.turned(
                "cpu", lambda now: replace(now, flags=now.flags | frozenset(lacking))
            ),
        )
    elif not mended:
        own = ("conda", "create", "-y", "-n", "torch-for-this-processor")
        step = steps.by_hand(
            "take-build-for-processor",
            "Take a build without these instructions (the release before this one, conda-forge's,"
            " or one compiled on this machine), or a machine that has them",
            why="A processor cannot be taught instructions; builds differ in what they ask for.",
            layer=Layer.PACKAGES,
            cost=steps.ENVIRONMENT,
            effect=effects.untried,
        )
        wanted = ("-c", "conda-forge", "--override-channels", "pytorch-cpu")
        yield replace(step, commands=shells.in_all([(*own, *wanted)]))
