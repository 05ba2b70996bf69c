"""Read what the environment probe said of modules, and which build of torch each one is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from torchdoctor.facts import Build, CondaPackage, Distribution, Module
from torchdoctor.reading import shapes
from torchdoctor.reading.answer import Answer
from torchdoctor.reading.packages import CONDA_NAMES, conda_of, distributions
from torchdoctor.reading.shapes import CannotReadError

_ASSIGNMENT = re.compile(
    r"""^(?P<name>[a-z_]+)[ \t]*(?::[^=\n]*)?=[ \t]*
        (?:'(?P<single>[^'\\\n]*)'|"(?P<double>[^"\\\n]*)"|(?P<none>None))[ \t\r]*(?:\#.*)?$""",
    re.MULTILINE | re.VERBOSE,
)
_LABEL = re.compile(r"(cpu|xpu|cu\d{2,3}|rocm\d+(?:\.\d+)*)(?![a-z0-9])")


def modules(answer: Answer) -> Mapping[str, Module | None]:
    """Read what each import would take; raises CannotReadError."""
    return _module_table(answer, "modules")


def local_modules(answer: Answer) -> Mapping[str, Module | None]:
    """Read what a script in the user's folder would import; raises CannotReadError."""
    return _module_table(answer, "local_modules")


def _module_table(answer: Answer, table: str) -> Mapping[str, Module | None]:
    said = shapes.mapping(answer.get(table), table)
    found = {shapes.text(name, table): _module(name, one) for name, one in said.items()}
    return MappingProxyType(found)


def _module(name: str, said: object) -> Module | None:
    if said is None:
        return None
    said = shapes.mapping(said, "modules")
    origin = shapes.text_or_none(said.get("origin"), "modules")
    return Module(name, origin, shapes.text(said.get("folder"), "modules"))


def build(name: str) -> Callable[[Answer], Build | None]:
    """Return the reader of the build that ``import name`` would take."""
    return lambda answer: _read_build(name, answer)


def _read_build(name: str, answer: Answer) -> Build | None:
    module, package = _found_module(name, answer)
    if module is None:
        return None
    if package is None:
        raise CannotReadError(f"{module.origin} is a single file, no build of {name}")
    versions = shapes.mapping(answer.get("versions"), "versions")
    text = shapes.text_or_none(versions.get(name), "versions")
    said = _assignments(text) if text is not None else {}
    owner = owner_of(name, answer)
    version = said.get("__version__") or (owner.version if owner else None)
    if not version:
        if module.origin is None:
            return None  # a folder without content, which Python takes for a namespace
        raise CannotReadError(
            f"{module.origin} has no version.py beside it and belongs to no distribution"
        )
    conda = _conda_record(name, owner, answer)
    return Build(
        version=version,
        cuda=said.get("cuda"),
        hip=said.get("hip"),
        xpu=said.get("xpu"),
        git=said.get("git_version"),
        origin=package,
        tag=tag_of(version, said, conda.build if conda else None),
        distribution=owner,
    )


def _assignments(text: str) -> dict[str, str | None]:
    """Return the constants that version.py assigns at its left margin, without running it."""
    return {
        match["name"]: match["single"] if match["double"] is None else match["double"]
        for match in _ASSIGNMENT.finditer(text)
    }


def tag_of(version: str, said: Mapping[str, str | None], conda_build: str | None) -> str | None:
    """Return what kind of build it is: cpu, cu130, rocm7.2, xpu; None when nothing tells.

    The local label of *version* tells first, then the values *said* in version.py, then conda's
    build string (``py3.11_cuda12.1_cudnn8.9.2_0``, ``cpu_generic_py312h...``). A version.py that
    names cuda and leaves every accelerator at None is of a CPU build.
    """
    if label := _LABEL.match(version.partition("+")[2]):
        return label[1]
    if cuda := re.match(r"(\d+)\.(\d+)", said.get("cuda") or ""):
        return f"cu{cuda[1]}{cuda[2]}"
    if hip := re.match(r"\d+\.\d+", said.get("rocm") or said.get("hip") or ""):
        return f"rocm{hip[0]}"
    if said.get("xpu"):
        return "xpu"
    if "cuda" in said and said["cuda"] is None:
        return "cpu"
    return _tag_of_conda(conda_build or "")


def _tag_of_conda(build: str) -> str | None:
    if re.search(r"(^|_)cpu(_|$)", build):
        return "cpu"
    from torchdoctor.tables import platforms  # noqa: PLC0415 - conda's builds only

    if known := platforms.conda_build(build):
        return "cu" + known.cuda.replace(".", "") if known.cuda else "cpu"
    if cuda := re.search(r"(?:^|_)cu(?:da)?_?(\d+)\.?(\d*)", build):
        digits = cuda[1] + cuda[2]
        return f"cu{digits}" if 2 <= len(digits) <= 3 else None  # noqa: PLR2004
    return None


def _found_module(name: str, answer: Answer) -> tuple[Module | None, str | None]:
    """Return the module that would be imported, and the folder of its package."""
    said = shapes.mapping(answer.get("modules"), "modules")
    if name not in said:
        errors = answer.errors()
        reason = errors.get(f"module {name}", "not looked for")
        raise CannotReadError(f"what `import {name}` takes could not be found out: {reason}")
    module = _module(name, said[name])
    package = shapes.mapping(said[name] or {}, "modules").get("package")
    return module, shapes.text_or_none(package, "modules")


def owner_of(name: str, answer: Answer) -> Distribution | None:
    """Return the distribution that the module called *name* belongs to, if any does."""
    try:
        module, _ = _found_module(name, answer)
        named = [d for d in answer.read(distributions) if d.name == name]
        text = shapes.mapping(answer.get("versions"), "versions").get(name)
    except CannotReadError:
        return None
    if module is None:
        return None
    version = (_assignments(text) if isinstance(text, str) else {}).get("__version__") or ""
    beside = [d for d in named if d.folder == module.folder]
    wanted = (version, version.partition("+")[0])
    fitting = [d for d in beside if d.version in wanted]
    return next(iter([*fitting, *beside, *(d for d in named if d.editable)]), None)


def _conda_record(name: str, owner: Distribution | None, answer: Answer) -> CondaPackage | None:
    """Return the conda record that the files of *name* come from, if they come from one."""
    if owner is not None and owner.installer not in ("conda", ""):
        return None
    conda = answer.told(conda_of)
    if conda is None:
        return None
    records = (conda.get(known) for known in CONDA_NAMES.get(name, (name,)))
    return next((record for record in records if record is not None), None)
