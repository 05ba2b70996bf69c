"""Python runs natively, not under emulation of another processor.

How it shows: torch is old (2.2.2 is the last for Intel Macs) or cannot be installed, everything is
slow, ``torch.backends.mps.is_available()`` is False on an Apple-silicon Mac.

Why: a terminal, an editor or a Homebrew of Intel times starts an x86_64 Python, and Rosetta makes
it run. Wheels are then chosen for an Intel Mac, which cannot reach Apple's GPU and gets no new
torch. Windows on ARM runs x64 Pythons in the same way; there it is usual and only worth knowing.

The fix is an environment with an arm64 Python. ``python -c "import platform;
print(platform.machine())"`` has to print arm64. Source: PyTorch's notes on macOS x86_64 (last
release 2.2), Apple's page on Metal for PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import choose, effects, gpu, steps
from torchdoctor.facts import Expectation, Facts, Interpreter, Platform, Symptom, Unknown
from torchdoctor.model import Commands, Evidence, Finding, Severity, Step

FAMILY = "environment"
FINDS = ("interpreter-emulated",)


def check(
    platform: Platform,
    interpreter: Interpreter,
    expectation: Expectation,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the machine type of the interpreter with the machine's own."""
    built_for = interpreter.machine.replace("-", "_").lower()
    foreign = built_for.endswith(("x86_64", "amd64"))
    arm = platform.machine.lower() in ("arm64", "aarch64")
    told = gpu.symptom(symptoms, "rosetta")
    if platform.emulated is False or not (platform.emulated or told or (foreign and arm)):
        return
    mac = platform.system == "darwin"
    severity: Severity = "note"
    if mac:
        severity = "error" if expectation.accelerator == "mps" else "warning"
    consequence = (
        "it gets the wheels of Intel Macs, of which 2.2.2 is the last, and cannot use the GPU"
        if mac
        else "torch runs slower than it could and GPU drivers may not be reachable"
    )
    yield Finding(
        "interpreter-emulated",
        severity,
        f"Python {interpreter.version} is built for {interpreter.machine or platform.machine}"
        f" and runs under emulation on {_name(platform)}: {consequence}.",
        (
            Evidence("interpreter.machine", interpreter.machine, "sysconfig of the interpreter"),
            Evidence("platform.emulated", str(platform.emulated), "the system")
            if told is None
            else Evidence("symptoms", told.text, told.source),
        ),
        _native(platform, interpreter, facts) if mac else (),
    )


def _name(platform: Platform) -> str:
    return "an Apple-silicon Mac" if platform.system == "darwin" else f"{platform.machine} hardware"


def _native(platform: Platform, interpreter: Interpreter, facts: Facts) -> tuple[Step, ...]:
    native = replace(platform, machine="arm64", emulated=False)
    there = replace(
        facts, platform=native, interpreter=replace(interpreter, machine="macosx-11.0-arm64")
    )
    minor = ".".join(interpreter.version.split(".")[:2])
    choice = choose.choose(there, python=minor)
    found = (minor, choice) if choice else choose.with_python(there)
    if found is None:
        return ()
    python, choice = found
    step = steps.new_environment(
        there,
        python,
        choice,
        why="Its Python is one for arm64, which gets the wheels that know Apple's GPU.",
    )
    asked = f"--python cpython-{python}-macos-aarch64 "
    return (
        replace(
            step,
            commands=Commands(
                bash=tuple(c.replace(f"--python {python} ", asked) for c in step.commands.bash)
            ),
            effect=effects.then(
                step.effect, effects.altered("platform", machine="arm64", emulated=False)
            ),
        ),
    )
