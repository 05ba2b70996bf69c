"""What the facts say of compiling extensions, for the questions that several checks ask. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from torchdoctor import gpu
from torchdoctor.facts import (
    Build,
    BuildTools,
    Compiler,
    Expectation,
    Facts,
    Gpu,
    Runtime,
    Toolkit,
    Unknown,
    items_of,
)
from torchdoctor.model import Effect
from torchdoctor.values import dataclass

LIST = "TORCH_CUDA_ARCH_LIST"
NAMED = {
    "Kepler+Tesla": "3.7",
    "Kepler": "3.5+PTX",
    "Maxwell+Tegra": "5.3",
    "Maxwell": "5.0;5.2+PTX",
    "Pascal": "6.0;6.1+PTX",
    "Volta+Tegra": "7.2",
    "Volta": "7.0+PTX",
    "Turing": "7.5+PTX",
    "Ampere+Tegra": "8.7",
    "Ampere": "8.0;8.6+PTX",
    "Ada": "8.9+PTX",
    "Hopper": "9.0+PTX",
    "Blackwell+Tegra": "11.0",
    "Blackwell": "10.0;10.3;12.0;12.1+PTX",
}
"""Names that torch takes for architectures, in the order in which it replaces them. Source:
torch/utils/cpp_extension.py, _get_cuda_arch_flags."""
_ENTRY = r"(\d{1,2})\.(\d)([a-z]?)(\+PTX)?"  # compiled where it is used: few looks need it


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of TORCH_CUDA_ARCH_LIST."""

    text: str
    arch: str | None
    """8.9, 9.0a; None for what is none."""
    ptx: bool = False

    @property
    def target(self) -> str:
        """Return it as nvcc calls it: 89, 90a."""
        return (self.arch or "").replace(".", "")


def asked(expectation: Expectation) -> bool:
    """Tell whether extensions are to be compiled here."""
    return expectation.profile == "build"


def entries(variables: Mapping[str, str] | Unknown) -> tuple[Entry, ...]:
    """Return what TORCH_CUDA_ARCH_LIST lists; nothing where torch goes by the GPUs itself."""
    listed = "" if isinstance(variables, Unknown) else variables.get(LIST, "")
    if listed in ("", "native"):
        return ()
    listed = listed.replace(" ", ";")
    for name, archs in NAMED.items():
        listed = listed.replace(name, archs)
    return tuple(map(entry, listed.split(";")))


def entry(text: str) -> Entry:
    """Return *text* taken apart."""
    found = re.fullmatch(_ENTRY, text)
    if found is None:
        return Entry(text, None)
    return Entry(text, f"{found[1]}.{found[2]}{found[3]}", ptx=bool(found[4]))


def nvcc(
    tools: BuildTools | Unknown, toolkits: tuple[Toolkit, ...] | Unknown
) -> Toolkit | Unknown | None:
    """Return the toolkit that torch would compile with; of a text, the first that it names."""
    if isinstance(tools, BuildTools) and not isinstance(tools.nvcc, Unknown):
        return tools.nvcc
    if not isinstance(toolkits, Unknown) and (told := [t for t in toolkits if t.release]):
        return told[0]
    return tools.nvcc if isinstance(tools, BuildTools) else tools


def targets(tools: BuildTools | Unknown, release: str) -> tuple[str, ...] | None:
    """Return what nvcc of *release* makes code for; None where neither table nor nvcc tells."""
    from torchdoctor.tables import nvcc as table  # noqa: PLC0415 - for whom compiles

    known = table.targets(release)
    if known or isinstance(tools, Unknown) or isinstance(tools.targets, Unknown):
        return known
    return tools.targets


def makes(known: tuple[str, ...], target: str) -> bool:
    """Tell whether nvcc that lists *known* makes code for *target*.

    Newer ones do not list the variants (90a) of what they list.
    """
    variants = any(one[-1].isalpha() for one in known)
    return target in known or (not variants and target.rstrip("af") in known)


def cards(gpus: tuple[Gpu, ...] | Unknown) -> tuple[Gpu, ...]:
    """Return the NVIDIA GPUs of which the capability is known."""
    return tuple(one for g in gpu.of_nvidia(gpus) if (one := gpu.with_capability(g)).capability)


def wanted(card: Gpu, runtime: Runtime | Unknown) -> str:
    """Return what torch asks nvcc for, for *card*: never more than torch itself has code for."""
    capability = card.capability or (0, 0)
    listed = runtime.arch_list if isinstance(runtime, Runtime) else ()
    own = [int(found[0]) for name in listed if (found := re.findall(r"sm_(\d+)", name))]
    if own:
        capability = min(capability, divmod(max(own), 10))
    return f"{capability[0]}{capability[1]}"


def cuda(torch: Build | Unknown | None) -> str | None:
    """Return the CUDA of *torch*; None where it is unknown or has none."""
    return gpu.cuda(torch) if isinstance(torch, Build) else None


def major(release: str | None) -> str:
    """Return the major of a CUDA release."""
    return (release or "").partition(".")[0]


# ---- what a step does to the facts ---------------------------------------------------------------


def becomes(**fields: object) -> Effect:
    """Return the effect of these parts of the tools being so; of unknown tools, nothing."""

    def effect(facts: Facts) -> Facts:
        if isinstance(facts.build_tools, Unknown):
            return facts
        tools = replace(facts.build_tools, **fields)  # type: ignore[arg-type] # names of its fields
        return facts.but(build_tools=tools)

    return effect


def with_toolkit(new: Toolkit) -> Effect:
    """Return the effect of a toolkit that is found before all others."""

    def effect(facts: Facts) -> Facts:
        facts = becomes(nvcc=new, home=new.path)(facts)
        return facts.but(toolkits=(new, *items_of(facts.toolkits)))

    return effect


def compilers_there(facts: Facts) -> Facts:
    """Return *facts* where both compilers are there; of which release is still to be seen."""
    tools = facts.build_tools
    if isinstance(tools, Unknown):
        return facts
    return facts.but(build_tools=replace(tools, cxx=_there(tools.cxx), cc=_there(tools.cc)))


def _there(one: Compiler | Unknown) -> Compiler | Unknown:
    if isinstance(one, Unknown) or (one.path and not one.error):
        return one
    return Compiler(one.command, one.command, named_by=one.named_by)
