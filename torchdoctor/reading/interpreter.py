"""Read what the environment probe said of the interpreter: whose it is, and what changes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from torchdoctor.facts import Distribution, Interpreter
from torchdoctor.reading import shapes
from torchdoctor.reading.answer import Answer
from torchdoctor.reading.builds import owner_of
from torchdoctor.reading.packages import CONDA_NAMES, conda_of, distributions

INSTALLERS = ("poetry", "pdm", "uv")
_FLAGS = (
    "free_threaded",
    "debug",
    "externally_managed",
    "conda_meta",
    "pixi",
    "pipx",
    "uv_tool",
    "embedded",
    "redacted",
)


def interpreter(answer: Answer) -> Interpreter:
    """Read the interpreter under test; raises CannotReadError."""
    said = shapes.mapping(answer.get("interpreter"), "interpreter")
    what = "interpreter"
    text = {
        key: shapes.text(said.get(key), what)
        for key in ("executable", "version", "prefix", "base_prefix", "platform", "implementation")
    }
    flag = {key: shapes.truth(said.get(key, False), what) for key in _FLAGS}
    config = pyvenv_config(shapes.text_or_none(said.get("pyvenv_cfg"), what))
    isolated = config is not None or text["prefix"] != text["base_prefix"]
    has_pip = _has_pip(answer)
    return Interpreter(
        executable=text["executable"],
        version=text["version"].split(" ")[0].rstrip("+"),
        prefix=text["prefix"],
        base_prefix=text["base_prefix"],
        kind=_kind(text, flag, config, isolated=isolated),
        machine=_machine(text["platform"], shapes.text_or_none(said.get("machine"), what)),
        bits=shapes.number(said.get("bits"), what),
        implementation=text["implementation"],
        free_threaded=flag["free_threaded"],
        debug=flag["debug"],
        user_site=_user_site(answer),
        site_packages=shapes.strings(answer.get("site_packages"), "site_packages"),
        externally_managed=flag["externally_managed"] and not isolated,
        has_pip=has_pip,
        installer=_installer(answer, said, flag, config, has_pip=has_pip),
        redacted=flag["redacted"],
    )


def search_path(answer: Answer) -> tuple[str, ...]:
    """Read the folders that an import looks in; raises CannotReadError."""
    return shapes.strings(answer.get("search_path"), "search_path")


def pyvenv_config(text: str | None) -> dict[str, str] | None:
    """Return the keys of a pyvenv.cfg in lower case; None when there is no such file."""
    if text is None:
        return None
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _kind(
    text: Mapping[str, str],
    flag: Mapping[str, bool],
    config: Mapping[str, str] | None,
    *,
    isolated: bool,
) -> str:
    home = _parts(text["base_prefix"])
    keys = config or {}
    marks = {
        "pipx": flag["pipx"],
        "uv-tool": flag["uv_tool"],
        "uv": "uv" in keys,
        "virtualenv": isolated and ("virtualenv" in keys or config is None),
        "venv": isolated,
        "conda": flag["conda_meta"],
        "store": any(p == "windowsapps" or p.startswith("pythonsoftware") for p in home),
        "embedded": flag["embedded"],
        "pyenv": not {".pyenv", "pyenv", "pyenv-win"}.isdisjoint(home),
        "system": _is_system(home),
    }
    by_uv = home[-3:-1] == ["uv", "python"]
    return next((kind for kind, so in marks.items() if so), "uv" if by_uv else "other")


def _is_system(home: Sequence[str]) -> bool:
    """Tell whether a prefix is one where systems and python.org's installers put Python."""
    joined = "/".join(home)
    return (
        home[:1] == ["usr"]
        or joined.startswith(("opt/homebrew/", "library/frameworks/python.framework/"))
        or "/python.framework/versions/" in f"/{joined}"
        or bool(re.match(r"[a-z]:/(program files( \(x86\))?/)?python\d", joined))
        or "/programs/python/python" in joined
    )


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"[\\/]+", path.lower()) if part]


def _machine(platform: str, running: str | None) -> str:
    """Return the machine type in sysconfig's platform name, spelled as the system spells it."""
    windows = {"win-amd64": "AMD64", "win-arm64": "ARM64", "win-arm32": "ARM", "win32": "x86"}
    if platform in windows:
        return windows[platform]
    built = platform.rpartition("-")[2]
    if built.startswith(("universal", "intel", "fat")) and running:
        return running  # several in one file: the one that runs
    return built


def _has_pip(answer: Answer) -> bool:
    return shapes.mapping(answer.get("pip"), "pip").get("pip") is not None


def _user_site(answer: Answer) -> str | None:
    said = shapes.mapping(answer.get("user_site"), "user_site")
    folder = shapes.text_or_none(said.get("folder"), "user_site")
    on_path = folder in search_path(answer)
    return folder if shapes.truth(said.get("enabled"), "user_site") and on_path else None


def _installer(
    answer: Answer,
    said: Mapping[str, object],
    flag: Mapping[str, bool],
    config: Mapping[str, str] | None,
    *,
    has_pip: bool,
) -> str:
    """Return what owns the environment, and therefore has to change it."""
    torch = owner_of("torch", answer)
    word = _first_word(torch) if torch else ""
    prefix = shapes.text(said.get("prefix"), "interpreter")
    project = _project_tool(shapes.strings(said.get("projects", ()), "interpreter"), prefix)
    words = {word} if torch else {_first_word(d) for d in answer.told(distributions) or ()}
    marks = (
        ("pixi", flag["pixi"] or ".pixi" in _parts(prefix)),
        (_installer_of_conda(answer, word, has_pip=has_pip), flag["conda_meta"]),
        ("uv", flag["uv_tool"]),
        ("pip", flag["pipx"]),
        ("poetry", word == "poetry"),
        ("pdm", word == "pdm"),
        (project or "", project is not None and word != "pip"),
        ("poetry", "pypoetry" in _parts(prefix) and word != "pip"),
        ("uv", "uv" in (config or {})),
        ("uv", "uv" in words and not has_pip),
    )
    return next((tool for tool, so in marks if so), "pip")


def _first_word(distribution: Distribution) -> str:
    """Return the program in INSTALLER: "poetry" of "Poetry 2.1.0"."""
    return distribution.installer.lower().partition(" ")[0]


def _installer_of_conda(answer: Answer, word: str, *, has_pip: bool) -> str:
    """Return what owns torch in a conda environment; *word* is torch's own INSTALLER."""
    conda = answer.told(conda_of)
    named = conda is not None and any(conda.get(known) for known in CONDA_NAMES["torch"])
    if word not in ("", "conda") and not named:
        return "uv" if word == "uv" and not has_pip else "pip"
    said = answer.raw("conda")
    history = said.get("commands") if isinstance(said, Mapping) else None
    last = history[-1] if isinstance(history, list) and history else ""
    program = _parts(last.partition(" ")[0])[-1:] if isinstance(last, str) else []
    return "mamba" if program and "mamba" in program[0] else "conda"


def _project_tool(projects: Iterable[str], prefix: str) -> str | None:
    """Return whose lock file lies beside the environment: its folder is in the project's."""
    above = _parts(prefix)[:-1]
    names = {_parts(path)[-1] for path in projects if _parts(path)[:-1] == above}
    return next((tool for tool in INSTALLERS if f"{tool}.lock" in names), None)
