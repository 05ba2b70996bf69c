"""macOS is new enough for the MPS backend of the installed torch.

How it shows: "The MPS backend is supported on MacOS 13.0+", where newer torch names a wrong number;
``torch.backends.mps.is_available()`` is False on Apple silicon, while ``is_built()`` is True.

Why: the wheels install on older systems than Metal's functions in them need: torch 2.10 and newer
asks for macOS 14.0, 2.5 to 2.8 for 13.0, older ones for 12.3. torch imports and runs on the CPU.
An Intel Mac, or a Python that runs under Rosetta, has no MPS either: that is interpreter-emulated.

The fix is a newer macOS, or the newest torch whose MPS this one has. Sources:
https://developer.apple.com/metal/pytorch, https://github.com/pytorch/pytorch/issues/164943,
https://github.com/pytorch/pytorch/issues/139425
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor import choose, effects, gpu, steps
from torchdoctor.facts import Build, Expectation, Facts, Platform, Runtime, Symptom, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Severity, Step
from torchdoctor.tables import drivers, platforms

FAMILY = "gpu"
FINDS = ("macos-too-old",)


def check(
    platform: Platform,
    torch: Build | None,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare macOS with what MPS of this torch needs."""
    if torch is None or platform.system != "darwin" or platform.machine != "arm64":
        return
    if isinstance(runtime, Runtime) and runtime.mps:
        return
    said = gpu.symptom(symptoms, "mps-macos-too-old")
    needed = platforms.mps_macos(torch.public)
    here = re.match(r"\d+(\.\d+)*", platform.version or "")
    if needed is None or here is None:
        raise CannotTell(f"which macOS MPS of torch {torch.public} needs is not known")
    if drivers.compare(here[0], needed) >= 0:
        return
    asked = said is not None or expectation.accelerator == "mps"
    severity: Severity = "note"
    if asked:
        severity = "error" if expectation.accelerator == "mps" else "warning"
    seen = [
        Evidence("platform.version", platform.version or "", "the system"),
        Evidence("torch.version", torch.version, "torch/version.py"),
    ]
    if said:
        seen.append(Evidence("symptoms", said.text, said.source))
    yield Finding(
        "macos-too-old",
        severity,
        f"MPS of torch {torch.public} needs macOS {needed} or newer and this is"
        f" {platform.version}, so torch runs on the CPU.",
        tuple(seen),
        tuple(_cures(needed, platform, facts)) if asked else (),
        confidence="certain" if said or isinstance(runtime, Runtime) else "likely",
    )


def _cures(needed: str, platform: Platform, facts: Facts) -> Iterator[Step]:
    wanted = facts.but(expectation=Expectation("mps"))
    if choice := choose.choose(wanted, accelerator="cpu"):
        why = f"Its MPS works on macOS {platform.version}."
        yield steps.change_build(facts, choice, why=why)
    yield steps.by_hand(
        "upgrade-macos",
        f"Upgrade to macOS {needed} or newer",
        why="MPS then works with the torch that is installed.",
        layer=Layer.RUNTIME,
        cost=steps.ENVIRONMENT,
        effect=effects.altered("platform", version=needed),
        admin=True,
    )
