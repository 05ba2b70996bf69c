"""Read what the environment probe said into facts.

The answer may come from a file of unknown origin: a value of a wrong type makes the facts that
need it unknown, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from torchdoctor.facts import (
    Build,
    Conda,
    CondaPackage,
    Distribution,
    Interpreter,
    Leftover,
    Module,
    Record,
    Unknown,
)

if TYPE_CHECKING:
    from torchdoctor.child import Run

CONDA_NAMES = {"torch": ("pytorch", "pytorch-cpu", "pytorch-gpu", "libtorch", "torch")}
"""What conda calls a distribution; the distribution's own name when it is not here."""
INSTALLERS = ("poetry", "pdm", "uv")


class _CannotReadError(ValueError):
    """The answer lacks something or has it in another shape. The message is a reason."""


def read(run: Run) -> dict[str, object]:
    """Return the facts in what the environment probe answered, by the names of their fields.

    Never raises: what is not there or cannot be read is :class:`~torchdoctor.facts.Unknown`.
    """
    answer = _Answer(run)
    return {name: _guarded(reader, answer) for name, reader in _READERS.items()}


def _guarded(reader: Callable[[_Answer], object], answer: _Answer) -> object:
    try:
        return reader(answer)
    except _CannotReadError as reason:
        return Unknown(str(reason))
    except RecursionError:
        return Unknown("the environment probe's answer is nested too deeply")


# ---- the answer, with its types checked ---------------------------------------------------------


class _Answer:
    """The data of one run, asked by name."""

    def __init__(self, run: Run) -> None:
        self._data = run.data
        self._run = run

    def get(self, name: str, *, error: str = "") -> object:
        """Return the piece called *name*; *error* is its name among the errors, if another."""
        if name in self._data:
            return self._data[name]
        errors = self._data.get("errors")
        if isinstance(errors, Mapping) and (said := errors.get(error or name)):
            raise _CannotReadError(f"looking at the {error or name} failed: {said}")
        raise _CannotReadError(self._why_nothing(name))

    def errors(self) -> Mapping[str, str]:
        """Return what failed: name of what was looked at, and how."""
        return _texts(self._data.get("errors") or {}, "errors")

    def raw(self, name: str) -> object:
        """Return the piece called *name* as it came; None when it did not."""
        return self._data.get(name)

    @cached_property
    def distributions(self) -> tuple[Distribution, ...]:
        """Return every distribution."""
        return _distributions(self)

    def distributions_or_none(self) -> tuple[Distribution, ...]:
        """Return every distribution; none when they cannot be told."""
        try:
            return self.distributions
        except _CannotReadError:
            return ()

    def conda_or_none(self) -> Conda | None:
        """Return the conda environment; None also when it cannot be told."""
        try:
            return _conda(self)
        except _CannotReadError:
            return None

    def complete(self) -> bool:
        """Tell whether the probe came to its end."""
        return self._data.get("done") is True

    def _why_nothing(self, name: str) -> str:
        if self._run.reason:
            return f"the environment probe gave no {name}: {self._run.reason}"
        last = self._run.stderr.text.strip().rpartition("\n")[2][:200]
        if self._run.outcome != "answered" and last:
            return f"the environment probe gave no {name}; its last words: {last}"
        return f"the environment probe gave no {name}"


def _wrong(what: str) -> _CannotReadError:
    return _CannotReadError(f"the environment probe's answer cannot be read at {what!r}")


def _dict(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _wrong(what)
    return value


def _list(value: object, what: str) -> Sequence[object]:
    if not isinstance(value, (list, tuple)):
        raise _wrong(what)
    return value


def _dicts(value: object, what: str) -> Iterable[Mapping[str, object]]:
    return [_dict(item, what) for item in _list(value, what)]


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise _wrong(what)
    return value


def _text_or_none(value: object, what: str) -> str | None:
    return None if value is None else _text(value, what)


def _strings(value: object, what: str) -> tuple[str, ...]:
    return tuple(_text(item, what) for item in _list(value, what))


def _texts(value: object, what: str) -> dict[str, str]:
    return {_text(k, what): _text(v, what) for k, v in _dict(value, what).items()}


def _number(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _wrong(what)
    return value


def _truth(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(what)
    return value


# ---- variables and paths ------------------------------------------------------------------------


def _variables(answer: _Answer) -> Mapping[str, str]:
    said = _dict(answer.get("variables"), "variables")
    return MappingProxyType(_texts(said.get("told"), "variables"))


def _search_path(answer: _Answer) -> tuple[str, ...]:
    return _strings(answer.get("search_path"), "search_path")


# ---- packages -----------------------------------------------------------------------------------


def _packages(answer: _Answer) -> Mapping[str, object]:
    return _dict(answer.get("packages"), "packages")


def _distributions(answer: _Answer) -> tuple[Distribution, ...]:
    said = _packages(answer)
    links = {
        (_text(link.get("name"), "egg_links"), _text(link.get("folder"), "egg_links"))
        for link in _dicts(said.get("egg_links", ()), "egg_links")
    }
    return tuple(
        _distribution(one, links) for one in _dicts(said.get("distributions"), "distributions")
    )


def _distribution(said: Mapping[str, object], links: set[tuple[str, str]]) -> Distribution:
    what = "distributions"
    name, folder = _text(said.get("name"), what), _text(said.get("folder"), what)
    direct = _dict(said.get("direct_url") or {}, what)
    return Distribution(
        name=name,
        version=_text(said.get("version"), what),
        folder=folder,
        metadata=_text(said.get("metadata"), what),
        installer=_text(said.get("installer", ""), what),
        requires=_strings(said.get("requires", ()), what),
        direct_url=_text_or_none(direct.get("url"), what),
        editable=_truth(direct.get("editable", False), what) or (name, folder) in links,
        user_site=_truth(said.get("user_site", False), what),
        wheel_tags=_strings(said.get("tags", ()), what),
    )


def _leftovers(answer: _Answer) -> tuple[Leftover, ...]:
    return tuple(
        Leftover(_text(one.get("name"), "leftovers"), _text(one.get("folder"), "leftovers"))
        for one in _dicts(_packages(answer).get("leftovers"), "leftovers")
    )


def _conda(answer: _Answer) -> Conda | None:
    said = answer.get("conda")
    if said is None:
        return None
    said = _dict(said, "conda")
    packages = [
        (
            CondaPackage(
                name=_text(one.get("name"), "conda"),
                version=_text(one.get("version"), "conda"),
                build=_text(one.get("build"), "conda"),
                channel=_channel(_text(one.get("channel"), "conda")),
            ),
            _number(one.get("torch_files", 0), "conda"),
        )
        for one in _dicts(said.get("packages"), "conda")
    ]
    return Conda(
        packages=tuple(package for package, _ in packages),
        prefix=_text(said.get("prefix", ""), "conda"),
        torch_files=sum(count for _, count in packages),
    )


_SUBDIR = re.compile(r"/(noarch|(linux|win|osx|emscripten|wasi|freebsd|zos)-\w+)/?$")


def _channel(text: str) -> str:
    """Return the name of a channel as people write it.

    conda, mamba and pixi keep the whole address of a platform's folder, perhaps with a token;
    the channels of Anaconda's own distribution (pkgs/main, pkgs/r ...) are called defaults.
    """
    path = _SUBDIR.sub("", text).rstrip("/")
    if "://" in path:
        path = path.partition("://")[2].partition("/")[2]
    path = re.sub(r"^t/[^/]+/", "", path)
    return "defaults" if re.match(r"pkgs/(main|r|free|msys2|pro)$", path) else path or text


def _records(answer: _Answer) -> Mapping[str, Record]:
    """Return the comparisons; a distribution that could not be compared has none."""
    if answer.get("verify") == "none":
        raise _CannotReadError("the files of packages were not to be compared with RECORD")
    said = answer.get("records")
    found: dict[str, Record] = {}
    owners = {name: _owner_of(name, answer) for name in ("torch", "torchvision", "torchaudio")}
    for one in _dicts(said, "records"):
        record = _record(one)
        if record is None:
            continue
        place = (one.get("folder"), one.get("metadata"))
        owner = owners.get(record.name)
        if record.name not in found or (owner and place == (owner.folder, owner.metadata)):
            found[record.name] = record
    if not found and not answer.complete():
        raise _CannotReadError("the environment probe came to no RECORD in time")
    return MappingProxyType(found)


def _record(said: Mapping[str, object]) -> Record | None:
    what = "records"
    name = _text(said.get("name"), what)
    if "problem" in said:
        return None
    numbers = {
        key: _number(said.get(key), what)
        for key in ("files", "missing_count", "altered_count", "hashed")
    }
    if _number(said.get("unreadable", 0), what) and not (
        numbers["missing_count"] or numbers["altered_count"]
    ):
        return None  # what was readable is whole, which says nothing of the rest
    return Record(
        name=name,
        missing=_strings(said.get("missing"), what),
        altered=_strings(said.get("altered"), what),
        **numbers,
    )


# ---- modules ------------------------------------------------------------------------------------


def _modules(answer: _Answer) -> Mapping[str, Module | None]:
    return _module_table(answer, "modules")


def _local_modules(answer: _Answer) -> Mapping[str, Module | None]:
    return _module_table(answer, "local_modules")


def _module_table(answer: _Answer, table: str) -> Mapping[str, Module | None]:
    said = _dict(answer.get(table), table)
    found = {_text(name, table): _module(name, one) for name, one in said.items()}
    return MappingProxyType(found)


def _module(name: str, said: object) -> Module | None:
    if said is None:
        return None
    said = _dict(said, "modules")
    origin = _text_or_none(said.get("origin"), "modules")
    return Module(name, origin, _text(said.get("folder"), "modules"))


# ---- builds -------------------------------------------------------------------------------------

_ASSIGNMENT = re.compile(
    r"""^(?P<name>[a-z_]+)[ \t]*(?::[^=\n]*)?=[ \t]*
        (?:'(?P<single>[^'\\\n]*)'|"(?P<double>[^"\\\n]*)"|(?P<none>None))[ \t\r]*(?:\#.*)?$""",
    re.MULTILINE | re.VERBOSE,
)
_LABEL = re.compile(r"(cpu|xpu|cu\d{2,3}|rocm\d+(?:\.\d+)*)(?![a-z0-9])")


def _build(name: str) -> Callable[[_Answer], Build | None]:
    return lambda answer: _read_build(name, answer)


def _read_build(name: str, answer: _Answer) -> Build | None:
    module, package = _found_module(name, answer)
    if module is None:
        return None
    if package is None:
        raise _CannotReadError(f"{module.origin} is a single file, no build of {name}")
    versions = _dict(answer.get("versions"), "versions")
    text = _text_or_none(versions.get(name), "versions")
    said = _assignments(text) if text is not None else {}
    owner = _owner_of(name, answer)
    version = said.get("__version__") or (owner.version if owner else None)
    if not version:
        if module.origin is None:
            return None  # a folder without content, which Python takes for a namespace
        raise _CannotReadError(
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


def _found_module(name: str, answer: _Answer) -> tuple[Module | None, str | None]:
    """Return the module that would be imported, and the folder of its package."""
    said = _dict(answer.get("modules"), "modules")
    if name not in said:
        errors = answer.errors()
        reason = errors.get(f"module {name}", "not looked for")
        raise _CannotReadError(f"what `import {name}` takes could not be found out: {reason}")
    module = _module(name, said[name])
    package = _dict(said[name] or {}, "modules").get("package")
    return module, _text_or_none(package, "modules")


def _owner_of(name: str, answer: _Answer) -> Distribution | None:
    """Return the distribution that the module called *name* belongs to, if any does."""
    try:
        module, _ = _found_module(name, answer)
        named = [d for d in answer.distributions if d.name == name]
        text = _dict(answer.get("versions"), "versions").get(name)
    except _CannotReadError:
        return None
    if module is None:
        return None
    version = (_assignments(text) if isinstance(text, str) else {}).get("__version__") or ""
    beside = [d for d in named if d.folder == module.folder]
    wanted = (version, version.partition("+")[0])
    fitting = [d for d in beside if d.version in wanted]
    return next(iter([*fitting, *beside, *(d for d in named if d.editable)]), None)


def _conda_record(name: str, owner: Distribution | None, answer: _Answer) -> CondaPackage | None:
    """Return the conda record that the files of *name* come from, if they come from one."""
    if owner is not None and owner.installer not in ("conda", ""):
        return None
    conda = answer.conda_or_none()
    if conda is None:
        return None
    records = (conda.get(known) for known in CONDA_NAMES.get(name, (name,)))
    return next((record for record in records if record is not None), None)


# ---- the interpreter ----------------------------------------------------------------------------


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


def _interpreter(answer: _Answer) -> Interpreter:
    said = _dict(answer.get("interpreter"), "interpreter")
    what = "interpreter"
    text = {
        key: _text(said.get(key), what)
        for key in ("executable", "version", "prefix", "base_prefix", "platform", "implementation")
    }
    flag = {key: _truth(said.get(key, False), what) for key in _FLAGS}
    config = pyvenv_config(_text_or_none(said.get("pyvenv_cfg"), what))
    isolated = config is not None or text["prefix"] != text["base_prefix"]
    has_pip = _has_pip(answer)
    return Interpreter(
        executable=text["executable"],
        version=text["version"].split(" ")[0].rstrip("+"),
        prefix=text["prefix"],
        base_prefix=text["base_prefix"],
        kind=_kind(text, flag, config, isolated=isolated),
        machine=_machine(text["platform"], _text_or_none(said.get("machine"), what)),
        bits=_number(said.get("bits"), what),
        implementation=text["implementation"],
        free_threaded=flag["free_threaded"],
        debug=flag["debug"],
        user_site=_user_site(answer),
        site_packages=_strings(answer.get("site_packages"), "site_packages"),
        externally_managed=flag["externally_managed"] and not isolated,
        has_pip=has_pip,
        installer=_installer(answer, said, flag, config, has_pip=has_pip),
        redacted=flag["redacted"],
    )


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


def _has_pip(answer: _Answer) -> bool:
    return _dict(answer.get("pip"), "pip").get("pip") is not None


def _user_site(answer: _Answer) -> str | None:
    said = _dict(answer.get("user_site"), "user_site")
    folder = _text_or_none(said.get("folder"), "user_site")
    on_path = folder in _search_path(answer)
    return folder if _truth(said.get("enabled"), "user_site") and on_path else None


def _installer(
    answer: _Answer,
    said: Mapping[str, object],
    flag: Mapping[str, bool],
    config: Mapping[str, str] | None,
    *,
    has_pip: bool,
) -> str:
    """Return what owns the environment, and therefore has to change it."""
    torch = _owner_of("torch", answer)
    word = _first_word(torch) if torch else ""
    prefix = _text(said.get("prefix"), "interpreter")
    project = _project_tool(_strings(said.get("projects", ()), "interpreter"), prefix)
    words = {word} if torch else {_first_word(d) for d in answer.distributions_or_none()}
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


def _installer_of_conda(answer: _Answer, word: str, *, has_pip: bool) -> str:
    """Return what owns torch in a conda environment; *word* is torch's own INSTALLER."""
    conda = answer.conda_or_none()
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


_READERS: Mapping[str, Callable[[_Answer], object]] = {
    "interpreter": _interpreter,
    "variables": _variables,
    "search_path": _search_path,
    "distributions": lambda answer: answer.distributions,
    "conda": _conda,
    "leftovers": _leftovers,
    "records": _records,
    "modules": _modules,
    "local_modules": _local_modules,
    "torch": _build("torch"),
    "torchvision": _build("torchvision"),
    "torchaudio": _build("torchaudio"),
}
