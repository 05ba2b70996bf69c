"""What a text does not hold and what is in it cannot be judged without: said, not guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, starmap

from torchdoctor.facts import (
    Build,
    Conda,
    Driver,
    Gpu,
    ImportTrial,
    Interpreter,
    Module,
    Runtime,
    Symptom,
)
from torchdoctor.reading.pasted import report
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import normal
from torchdoctor.reading.pasted.statements import Source
from torchdoctor.tables.symptoms import ASKED

FEWEST_ROWS = 3
"""Rows of packages, or lines of collect_env, that make a listing."""
_ANSWERS = frozenset(
    (
        *("pip list", "pip list --format=json", "pip show", "conda list", "conda list --json"),
        *("conda list --explicit", "conda list --export", "pixi list", "poetry show"),
        *("nvidia-smi", "rocminfo", "rocm-smi", "amd-smi", "lspci", "nvcc", "conda info"),
        *(
            "pip debug",
            "docker run",
            "a compose file",
            "winget list",
            "a list of programs",
            "accelerate env",
        ),
        *("Ultralytics", "systemctl", "dpkg", "rpm", "nvidia-smi topo", "sw_vers"),
    )
)
"""Forms that are the whole answer of a program."""
_LISTS = frozenset(one for one in _ANSWERS if one.startswith(("pip list", "conda list")))
_LISTS_ALL = re.compile(
    r"(?:python\S* -m )?(?:pip\d?|uv pip|conda|mamba|micromamba) (?:list|freeze)(?! ?[|>])[^|>]*$"
)
_HEADING = re.compile(r"@EXPLICIT|\s{0,4}List of packages in environment")
_FAILS = re.compile(
    r"(?i)\b(?:\w*error\b|\w*exception\b|fail\w*|hang\w*|hung|stuck|stays|crash\w*|killed|abort\w*|"
    r"time[ds]? ?out|timeout|illegal|invalid|cannot|could not|unable|conflict\w*|"
    r"(?:not|never) \w+|warn\w*|traceback|refused|denied|missing|mismatch\w*|"
    r"unsatisfiable|no solution)"
)


def read(
    texts: Sequence[tuple[str, Sequence[Line]]],
    sources: Sequence[Source],
    fields: Mapping[str, object],
    *,
    torn: bool = False,
) -> Iterator[str]:
    """Yield what *texts*, by name, lack, one sentence each.

    *sources* are the statements that were read from them, *fields* the facts that came of them.
    *torn* tells that something in them is known to be missing.
    """
    names = ", ".join(name for name, _ in texts)
    lines = [line for _, parts in texts for line in parts]
    own = any(one.name == report.NAME for one in _symptoms(fields))
    lacking = list(dict.fromkeys(_lacking(lines, fields)))
    if not (torn or own or lacking or "trial" in fields or _has_answer(lines, sources)) and fields:
        lacking.append(_SINGLE)
    for what in lacking:
        yield f"{names}: {what}"


_SINGLE = "neither an error nor a whole listing stands in it; only single lines were read"


def _lacking(lines: Sequence[Line], fields: Mapping[str, object]) -> Iterator[str]:
    symptoms = tuple(one for one in _symptoms(fields) if one.name != ASKED)
    yield from _of_messages(lines, symptoms, fields)
    yield from _of_import(lines, fields)
    yield from _of_listing(fields)
    yield from _of_installer(lines, symptoms, fields)
    yield from _of_cuda(lines, symptoms, fields)
    yield from _of_wsl(lines, fields)
    if any(starmap(_goes_on, pairwise(lines))):
        yield "a command goes on in the line below it, and was read to the end of its own"


_OPTION = re.compile(r"--[a-z][\w-]{1,40}[= ]")


def _goes_on(line: Line, below: Line) -> bool:
    """Tell whether the command in *line* was broken, so that *below* begins with an option."""
    return line.kind == "command" and below.kind == "output" and bool(_OPTION.match(below.text))


def _symptoms(fields: Mapping[str, object]) -> tuple[Symptom, ...]:
    found = fields.get("symptoms")
    return found if isinstance(found, tuple) else ()


def _has_answer(lines: Sequence[Line], sources: Sequence[Source]) -> bool:
    """Tell whether a program's whole answer, or a failure in words, stands in *lines*."""
    layouts = {source.said.layout for source in sources}
    asked = {s.said.fact for s in sources if s.said.layout == "what Python printed"}
    listed = sum(s.said.fact in ("package", "conda") for s in sources)
    whole = any(s.said.fact == "whole" for s in sources) or any(
        (_LISTS_ALL if line.kind == "command" else _HEADING).match(line.text) for line in lines
    )
    if listed < FEWEST_ROWS and not whole:
        layouts -= _LISTS
    keys = {
        (source.file, source.said.line)
        for source in sources
        if source.said.layout == "collect_env" and source.said.fact not in ("package", "conda")
    }
    return bool(
        layouts & _ANSWERS
        or (listed and whole)
        or any(fact.startswith(("torch", "runtime")) for fact in asked)
        or listed >= FEWEST_ROWS
        or len(keys) >= FEWEST_ROWS
        or any(_FAILS.search(_in_words(line)) for line in lines)
    )


def _in_words(line: Line) -> str:
    """Return what *line* says; of what was typed, the remark behind it."""
    text = line.text[:2000]
    return text if line.kind == "output" else text.partition(" #")[2]


# ---- messages -----------------------------------------------------------------------------------

_NEEDS_GPU = {"no-kernel-image", "device-count-mismatch", "hip-no-binary", "rocblas-arch-missing"}
"""Messages of torch that only a GPU and a build together explain."""
_NEEDS_TORCH = {"cudnn-library-missing"}
"""Messages that tell nothing without the CUDA or cuDNN of the torch beside them."""
_WHICH_TORCH = "a library that torch brings is missing, and which torch is there is not told"
_OF_CUDA = re.compile(r"lib(?:cu[a-z]+|nv\w+|nccl)\.so")
_LIBRARY_OF = re.compile(
    r"(?:site|dist)-packages[\\/](?!torch[\\/])([A-Za-z_]\w{1,60}?)(?:[\\/.]|_cuda\b)|lib(torchtext|torchaudio)"
)


def _of_messages(
    lines: Sequence[Line], symptoms: Sequence[Symptom], fields: Mapping[str, object]
) -> Iterator[str]:
    names = {symptom.name for symptom in symptoms}
    torch = isinstance(fields.get("torch"), Build)
    gpus = bool(fields.get("gpus"))
    runtime = fields.get("runtime")
    listed = isinstance(runtime, Runtime) and bool(runtime.arch_list)
    built_for = "gpu-not-in-build" in names or (listed and gpus)
    if names & _NEEDS_GPU and not built_for and not (torch and gpus):
        lacking = " and ".join(
            what for what, known in (("which GPU", gpus), ("which torch", torch)) if not known
        )
        yield f"an error of the GPU stands in it, but not {lacking} it is of"
    if "device-count-mismatch" in names and _one_gpu(fields.get("gpus")):
        yield "an error speaks of more GPUs, or parts of one, than are listed"
    if names & _NEEDS_TORCH and not torch:
        yield _WHICH_TORCH
    illegal = any(s.values.get("kind") == "Illegal instruction" for s in symptoms)
    if illegal and "cpu" not in fields:
        yield "a program died of an illegal instruction, and what the processor knows is not told"
    for symptom in symptoms:
        library = symptom.text
        if symptom.name == "shared-library-missing" and not torch and _OF_CUDA.search(library):
            yield _WHICH_TORCH
        if symptom.name != "undefined-symbol":
            continue
        other = _LIBRARY_OF.search(library)
        name = normal(other[1] or other[2]) if other else ""
        if name and not (torch and _listed(fields, name)):
            yield f"which {name} and which torch do not fit each other does not stand in it"
        elif "nccl" in library and not _tells_nccl(lines, fields):
            yield "which NCCL is installed and which is loaded does not stand in it"


def _tells_nccl(lines: Sequence[Line], fields: Mapping[str, object]) -> bool:
    """Tell whether ldd shows which NCCL is loaded, and pip's list which one torch came with."""
    loaded = [line.text for line in lines if "libnccl" in line.text and "=>" in line.text]
    foreign = any("site-packages" not in text for text in loaded)
    return foreign or (bool(loaded) and _listed(fields, "nvidia-nccl"))


def _one_gpu(gpus: object) -> bool:
    return (
        isinstance(gpus, tuple)
        and len(gpus) == 1
        and not any(isinstance(gpu, Gpu) and gpu.mig for gpu in gpus)
    )


def _listed(fields: Mapping[str, object], name: str) -> bool:
    """Tell whether a package is listed that is called *name*, more or less exactly."""
    found = fields.get("distributions")
    names = [str(one.name) for one in found] if isinstance(found, tuple) else []
    return any(one.startswith(name) or name.startswith(f"{one}-") for one in names)


# ---- imports and installers ---------------------------------------------------------------------


_TORCH_ROW = re.compile(r"\s{0,4}(?:\[conda\] )?(?:py|lib)?torch(?:-[cg]pu)?\s")


def _of_import(lines: Sequence[Line], fields: Mapping[str, object]) -> Iterator[str]:
    """Look for a listing of the environment that torch was imported from, without torch."""
    conda, modules = fields.get("conda"), fields.get("modules")
    module = modules.get("torch") if isinstance(modules, Mapping) else None
    if not isinstance(conda, Conda) or not conda.prefix or not isinstance(module, Module):
        return
    inside = _plain(module.folder).startswith(_plain(conda.prefix) + "/")
    rows = any(_TORCH_ROW.match(line.text[:200]) for line in lines)
    if inside and not rows and not _listed(fields, "torch"):
        yield "the listing of the environment does not show the torch that was imported from it"


_COMPANIONS = ("torchvision", "torchaudio", "torchtext")


def _of_listing(fields: Mapping[str, object]) -> Iterator[str]:
    """Look for what cannot be installed without torch, in a listing without torch."""
    found = fields.get("distributions")
    names = {one.name for one in found} if isinstance(found, tuple) else set()
    if "torch" in fields or "torch" in names:
        return
    for name in _COMPANIONS:
        if name in names:
            yield f"{name} is listed in it, and the torch that it needs is not"


def _plain(path: str) -> str:
    return re.sub(r"[\\/]+", "/", path).rstrip("/").lower()


_INSTALL = re.compile(
    r"\b(?:pip[\d.]*|uv pip|uv|conda|mamba|micromamba|poetry|pixi) (?:install|add)\b"
)
_OF_TORCH = re.compile(r"\b(?:py)?torch\b")
_INSTALLER_SAYS = re.compile(
    r"\s*(?:\*{3}\s+)?(?:Requirement already|Collecting|Looking in|Installing|Successfully|ERROR|"
    r"Downloading|Using cached|Resolved|Solving|Could not)"
)


def _of_installer(
    lines: Sequence[Line], symptoms: Sequence[Symptom], fields: Mapping[str, object]
) -> Iterator[str]:
    typed = [line for line in lines if line.kind == "command" and _INSTALL.search(line.text)]
    answered = any(_INSTALLER_SAYS.match(line.text[:200]) for line in lines)
    absent = "torch" in fields and fields["torch"] is None
    if absent and any(_OF_TORCH.search(line.text) for line in typed) and not answered:
        yield "what the installer of torch answered does not stand in it"
    for symptom in symptoms:
        python = fields.get("interpreter")
        old = re.search(r"from versions: (?:none|0\.1\.2\b)", symptom.text)
        if symptom.name == "no-wheel-found" and old and not isinstance(python, Interpreter):
            yield "pip found no torch, and which Python it is of does not stand in it"


# ---- CUDA ---------------------------------------------------------------------------------------


def _of_cuda(
    lines: Sequence[Line], symptoms: Sequence[Symptom], fields: Mapping[str, object]
) -> Iterator[str]:
    runtime = fields.get("runtime")
    unavailable = getattr(runtime, "available", None) is False
    driver, trial = fields.get("driver"), fields.get("trial")
    failed = isinstance(trial, ImportTrial) and trial.outcome != "imported"
    fails = isinstance(driver, Driver) and driver.error is not None
    # A container that was started without GPUs has none, whichever torch is in it.
    fails = fails or getattr(fields.get("container"), "gpu_hook", None) is False
    if unavailable and not (failed or fails or symptoms or fields.get("torch")):
        yield "torch sees no GPU, and which torch it is does not stand in it"
    yield from _whose_cuda(lines, fields)


_SAID_CUDA = re.compile(
    r"(?i)\s{0,4}(?:[-*] )?CUDA(?: version)? ?[:=] ?(\d{1,2}\.\d{1,2})(?:\.\d{1,4})?\s*$"
)


def _whose_cuda(lines: Sequence[Line], fields: Mapping[str, object]) -> Iterator[str]:
    """Say where a version of CUDA was written down that is not torch's own.

    Of the driver, of a toolkit, of a library: each has one, and the line does not tell.
    """
    torch, driver, toolkits = (fields.get(key) for key in ("torch", "driver", "toolkits"))
    if not isinstance(torch, Build):
        return
    own = {torch.cuda, _of_tag(torch.tag)}
    own |= {driver.cuda} if isinstance(driver, Driver) else set()
    own |= {one.release for one in toolkits} if isinstance(toolkits, tuple) else set()
    for line in lines:
        said = _SAID_CUDA.match(line.text[:200]) if line.kind == "output" else None
        if said and said[1] not in own:
            line_ = line.text.strip()[:60]
            use = "only a sign of some CUDA here" if torch.tag == "cpu" else "left out"
            yield f"{line_!r} is not torch's CUDA, and whose it is was not told; it was {use}"


def _of_tag(tag: str | None) -> str | None:
    found = re.fullmatch(r"cu(\d{2,3})", tag or "")
    return f"{found[1][:-1]}.{found[1][-1]}" if found else None


# ---- WSL ----------------------------------------------------------------------------------------


def _of_wsl(lines: Sequence[Line], fields: Mapping[str, object]) -> Iterator[str]:
    """Look for /dev/dxg, through which only WSL2 has a GPU, without the kernel that tells."""
    platform = fields.get("platform")
    if getattr(platform, "wsl", None) is None and any("/dev/dxg" in x.text for x in lines):
        yield "/dev/dxg is WSL's, and which WSL this is does not stand in it (uname -r)"
