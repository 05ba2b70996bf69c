"""Whether torch, or a companion of it, failed to import in a traceback."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.facts import ErrorText, ImportTrial
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.traceback import Exc, exceptions, torch_file

LONGEST_MESSAGE = 4000
_OUTCOMES = (
    "OSError",
    "ImportError",
    "ModuleNotFoundError",
    "AttributeError",
    "RuntimeError",
    "FileNotFoundError",
    "NameError",
    "SyntaxError",
    "ValueError",
    "TypeError",
    "KeyError",
    "PermissionError",
)
_INIT = re.compile(
    r"[\\/](torch|torchvision|torchaudio)[\\/](?:__init__|_meta_registrations|extension)\.py$"
)
_SCRIPT = re.compile(r"[\\/](torch)\.py$")
_AT_IMPORT = {
    "",
    "<module>",
    "_load_dll_libraries",
    "_load_global_deps",
    "_preload_cuda_deps",
    "import_module",
}
_LIBRARY = re.compile(
    r"[\\/](torch|torchvision|torchaudio)[\\/](?:lib[\\/])?[\w.+-]{1,80}\.(?:so|dll|pyd|dylib)\b"
)
_LOADING = re.compile(r"Error loading \\?[\"“][^\"”\n]{1,400}?[\\/](torch)[\\/]lib[\\/]")
_OWN = re.compile(r"([A-Za-z]:[^\"'\n]{1,400}?[\\/]torch|/[^\"'\n:]{1,400}?/torch)([\\/])lib[\\/]")
_MISSING = re.compile(r"No module named '?(torch|torchvision|torchaudio)'?\s*$")
_ISOLATED = re.compile(
    r"Getting requirements to build wheel|build isolation|subprocess-exited-with-error|"
    r"setup\.py (?:egg_info|bdist_wheel)"
    r"|Preparing metadata|get_requires_for_build|metadata-generation-failed|pip-build-env|"
    r"build-env-"
)


def read(text: str, lines: Sequence[Line]) -> dict[str, ImportTrial]:
    """Return, by module, the failed imports that *text* shows; the last of each.

    *lines* are the lines of the same text: what was typed before an error that has no traceback.
    """
    found: dict[str, ImportTrial] = {}
    every = exceptions(text)
    isolated = bool(_ISOLATED.search(text))
    for exc in every:
        if (module := _module(exc)) and not (isolated and "ModuleNotFound" in exc.type):
            found[module] = _trial(module, exc, every)
    for module, exc in _typed(lines, every):
        found.setdefault(module, _trial(module, exc, every))
    return found


def missing(trial: ImportTrial) -> bool:
    """Tell whether the import failed because no such module is there."""
    return trial.error is not None and bool(_MISSING.search(trial.error.message.strip()))


def _module(exc: Exc) -> str | None:
    """Return the module whose import *exc* ended, None when it ended something else."""
    kind = exc.type.rpartition(".")[2]
    if kind not in _OUTCOMES:
        return None
    own = [
        match[1]
        for frame in exc.frames
        if (match := _INIT.search(frame.file) or _SCRIPT.search(frame.file))
        and frame.function in _AT_IMPORT
    ]
    if own:
        return own[0]
    if not exc.frames or kind in ("OSError", "ImportError", "FileNotFoundError"):
        first = exc.message.split("\n", 1)[0]
        library = _LOADING.search(first) or (
            _LIBRARY.search(first)
            if kind in ("OSError", "ImportError", "FileNotFoundError")
            else None
        )
        if library:
            return library[1]
    if kind == "ModuleNotFoundError" and (absent := _MISSING.search(exc.message.strip())):
        return absent[1]
    return None


def _typed(lines: Sequence[Line], every: Sequence[Exc]) -> Iterator[tuple[str, Exc]]:
    """Yield errors that stand right below an import that was typed."""
    for place, line in enumerate(lines[:-1]):
        typed = re.match(
            r"(?:import|from) (torch|torchvision|torchaudio)\b[\w., ]*;?\s*$", line.text
        )
        if line.kind != "python" or typed is None:
            continue
        below = " ".join(lines[place + 1].text.split())[:200]
        for exc in every:
            shown = f"{exc.type}: {exc.message}"
            if below and " ".join(shown.split()).startswith(below[:120]) and not exc.frames:
                yield typed[1], exc


def _own_lines(message: str) -> str:
    """Return the first line of *message*, and those that dyld adds; the rest may be other text."""
    lines = message.strip().splitlines()
    more = [
        line
        for line in lines[1:8]
        if re.match(r"\s*(?:Referenced from|Reason|Expected in)\b", line)
    ]
    return "\n".join([*lines[:1], *more])[:LONGEST_MESSAGE]


def _trial(module: str, exc: Exc, every: Sequence[Exc]) -> ImportTrial:
    message = _own_lines(exc.message)
    frames = "\n".join(
        f'  File "{f.file}", line {f.line}, in {f.function}' for f in exc.frames[-20:]
    )
    file = torch_file((exc,)) or (torch_file(every) if module == "torch" else None)
    if file is None and module == "torch" and (own := _OWN.search(message)):
        file = f"{own[1]}{own[2]}__init__.py"  # torch loads the libraries of its own folder
    return ImportTrial(
        module=module,
        outcome="raised",
        seconds=0.0,
        error=ErrorText(exc.type, message, frames),
        file=file,
    )
