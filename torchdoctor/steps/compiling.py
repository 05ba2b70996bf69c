"""Steps for those who compile: compilers, the CUDA toolkit, ninja, Python's headers."""

from __future__ import annotations

from dataclasses import replace

from torchdoctor import building, effects, installers, shells
from torchdoctor.facts import Compiler, Facts, Toolkit
from torchdoctor.model import Commands, Effect, Layer, Step
from torchdoctor.scale import COMPANION, SMALL
from torchdoctor.steps.system import by_hand, system_install

_BUILD_TOOLS = (
    "winget",
    "install",
    "--id",
    "Microsoft.VisualStudio.2022.BuildTools",
    "--override",
    "--wait --passive --add Microsoft.VisualStudio.Workload.VCTools --includeRecommended",
)


def compiler(facts: Facts, *, windows: bool, effect: Effect) -> Step:
    """Return the step that installs a C++ compiler."""
    step = by_hand(
        "install-compiler",
        "Install the C++ Build Tools of Visual Studio, then start from their prompt (x64 Native"
        " Tools Command Prompt), where cl.exe is on PATH"
        if windows
        else "Install a C++ compiler (Debian, Ubuntu: build-essential; Fedora, RHEL: gcc-c++;"
        " Alpine: build-base; macOS: xcode-select --install; conda: gxx)",
        why="What has to be compiled is then compiled.",
        layer=Layer.ENVIRONMENT,
        cost=SMALL,
        effect=effect,
        admin=True,
    )
    if not windows:
        return replace(
            step,
            commands=system_install(
                facts, apt="build-essential", dnf="gcc-c++ make", apk="build-base"
            ),
        )
    tools = shells.in_all([_BUILD_TOOLS])
    return replace(step, commands=Commands((), tools.powershell, tools.cmd))


def older_compiler(
    major: str, *, windows: bool, there: bool = False, becomes: Compiler | None = None
) -> Step:
    """Return the step that has a build done by gcc *major*, beside the present one.

    *major* is empty where no number is known; *there* says that it is installed. *becomes* is
    another compiler than gcc, as it then is.
    """
    kind = becomes.kind if becomes else "gcc"
    numbered = bool(major) and not windows and kind == "gcc"
    older = Compiler(f"g++-{major}", f"g++-{major}", "gcc", major, "CXX") if numbered else becomes
    effect = effects.settled("host-compiler-refused")
    if older:
        effect = effects.then(building.becomes(cxx=older, cc=older), effect)
    step = by_hand(
        f"use-gcc-{major}" if numbered else "use-older-compiler",
        "Install a Visual Studio release that this CUDA takes, and build from its prompt"
        if windows
        else f"Build with an older {kind} beside the present one",
        why="The compiler only has to be older for this one build.",
        layer=Layer.ENVIRONMENT,
        cost=SMALL,
        effect=effect,
    )
    if not numbered:
        return step
    install = Commands(bash=() if there else (f"sudo apt-get install -y gcc-{major} g++-{major}",))
    names = (
        ("CC", f"gcc-{major}"),
        ("CXX", f"g++-{major}"),
        ("NVCC_PREPEND_FLAGS", f"-ccbin g++-{major}"),
    )
    said = installers.join(*(shells.assign(name, value) for name, value in names))
    return replace(step, commands=installers.join(install, Commands(bash=said.bash)))


def newer_compiler(first: int, *, there: str = "") -> Step:
    """Return the step that has a build done by gcc *first* or newer; *there* is one, if any is."""
    major = there or str(first)
    newer = Compiler(f"g++-{major}", f"g++-{major}", "gcc", major)
    step = by_hand(
        "use-newer-compiler",
        f"Install gcc {first} or newer beside the present one (Debian, Ubuntu: g++-{first}; RHEL:"
        " gcc-toolset; conda: gxx), and name it by CC and CXX",
        why="Each torch compiles with the C++ of its time.",
        layer=Layer.ENVIRONMENT,
        cost=SMALL,
        effect=effects.then(
            building.becomes(cxx=newer, cc=newer), effects.settled("cxx-standard-unknown")
        ),
        admin=not there,
    )
    names = (("CC", f"gcc-{major}"), ("CXX", f"g++-{major}"))
    said = installers.join(*(shells.assign(name, value) for name, value in names))
    return replace(step, commands=Commands(bash=said.bash if there else ()))


def toolkit(wants: str | None) -> Step:
    """Return the step that brings a CUDA toolkit of the release *wants*, and names it."""
    folder = f"/usr/local/cuda-{wants}" if wants else "/usr/local/cuda"
    effect = effects.then(effects.untried, effects.settled("nvcc-not-found"))
    if wants:
        effect = effects.then(building.with_toolkit(Toolkit(wants, folder)), effect)
    step = by_hand(
        f"name-toolkit-{wants.replace('.', '-')}" if wants else "name-fitting-toolkit",
        f"Install a CUDA {wants or '12.8 or newer'} toolkit and name it for this build",
        why="nvcc has to be of the CUDA that torch was built with; the driver is not concerned.",
        layer=Layer.ENVIRONMENT,
        cost=COMPANION,
        effect=effect,
    )
    return replace(step, commands=shells.assign("CUDA_HOME", folder))


def headers(version: str, facts: Facts, *, effect: Effect) -> Step:
    """Return the step that installs Python.h of Python *version* on Linux, empty if unknown."""
    version = version or "3"
    step = by_hand(
        "install-python-headers",
        f"Install the headers of Python {version} (Debian, Ubuntu: python{version}-dev; Fedora,"
        " RHEL: python3-devel; Alpine: python3-dev), or make the environment with a Python that has"
        " them, such as uv's",
        why="The system's Python has its headers in a package of their own.",
        layer=Layer.ENVIRONMENT,
        cost=SMALL,
        effect=effect,
        admin=True,
    )
    lines = system_install(
        facts, apt=f"python{version}-dev", dnf=f"python{version}-devel", apk="python3-dev"
    )
    return replace(step, commands=lines)


def with_effect(step: Step, effect: Effect) -> Step:
    """Return *step* with all that it does to the facts of who compiles."""
    return replace(step, effect=effect)
