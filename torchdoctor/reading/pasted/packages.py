"""What pip, uv and poetry list, and single lines that name a package and its version."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Sequence

from torchdoctor.reading.pasted import paths
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import (
    DOTTED,
    LISTED,
    PRINTED,
    TOLD,
    VERSION,
    CondaRow,
    Package,
    Said,
    Whole,
    normal,
    plausible,
)

KNOWN = re.compile(
    r"torch(?:vision|audio|text|data|codec|ao|rec|tune|metrics|sde|diffeq|sparse|_sparse|"
    r"-[\w.-]+|_[\w.-]+)?"
    r"|pytorch-(?:triton|lightning)[\w-]*|triton(?:-windows|-xpu|-rocm)?|xformers|flash[-_]attn|"
    r"numpy|nvidia[-_][\w-]+"
    r"|cuda-(?:bindings|python|pathfinder|toolkit)|bitsandbytes|vllm|deepspeed|apex|cupy[\w-]*|"
    r"transformers"
    r"|accelerate|diffusers|tensorflow[\w-]*|jax(?:lib)?|onnxruntime[\w-]*|"
    r"intel[-_]extension[\w-]+|scipy|pandas"
    r"|sageattention|auto[-_]gptq|detectron2|mmcv[\w-]*|pillow|opencv-python[\w-]*|fairscale|"
    r"lightning|sglang|flashinfer[\w-]*",
    re.IGNORECASE,
)
"""Packages that a line of its own is about, without a listing around it."""
_HEADER = re.compile(
    r"\s{0,4}Package\s+Version(?:\s+(?:Editable project location|Location|Installer|Build))*\s*$"
)
_RULE = re.compile(r"\s{0,4}(-{3,})\s+(-{3,})(?:\s+-{3,})*\s*$")
_ROW = re.compile(
    rf"\s{{0,4}}([A-Za-z0-9][\w.-]{{0,100}})\s+({VERSION})(?:\s+((?:[A-Za-z]:[\\/]|/|"
    rf"~)\S.{{0,300}}|uv|pip|conda|poetry\S*))?\s*$"
)
_LOOSE = re.compile(rf"\s{{0,4}}(?:[-*•] )?({KNOWN.pattern})\s+({DOTTED})\s*$", re.IGNORECASE)
_PINNED = re.compile(rf"\s{{0,4}}([A-Za-z0-9][\w.-]{{0,100}})={{2,3}}({VERSION})\s*$")
_TAGGED = re.compile(r"\s{0,4}(?:(?:[-*•] )?`?)?([A-Za-z0-9][\w.-]{0,100})={2,3}(\S{1,60})`?\s*$")
_FILE = re.compile(
    r"\s{0,4}([A-Za-z0-9][\w.-]{0,100}) @ (?:file|https?|git\+\w+)://\S{1,400}?(?:/|%2F)?[^/\s]*$"
)
_WHEEL = re.compile(rf"/[\w.]+-({VERSION})-(?:cp|py)\d[\w.]*-[\w.]+-[\w.]+\.whl")
_OLD = re.compile(rf"\s{{0,4}}({KNOWN.pattern}) \(({DOTTED})\)\s*$", re.IGNORECASE)
_CONDA = re.compile(
    r"#? ?(?:packages in environment|List of packages in)|#\s{1,4}Name\s{2,}Version"
)
_SHOW = re.compile(r"\s{0,4}Name: ([A-Za-z0-9][\w.-]{0,100})\s*$")
_SHOWN = re.compile(
    r"\s{0,4}(Name|Version|Location|Requires|Installer|Editable project location): ?(.{0,2000})$"
)
_FILTER = re.compile(
    r"\||\bgrep\b|findstr|Select-String|--outdated|-o\b|--user|--not-required|--exclude"
)
_REQUIREMENTS = re.compile(
    r"requirements[\w.-]*\.txt|constraints|pyproject|\.ya?ml|setup\.(?:py|cfg)|lock\b"
)

FEWEST_FROZEN = 3
NEEDS = {
    "torch": ("typing-extensions",),
    "torchvision": ("torch", "numpy", "pillow"),
    "torchaudio": ("torch",),
    "jinja2": ("markupsafe",),
    "sympy": ("mpmath",),
    "requests": ("urllib3", "idna", "certifi"),
    "pandas": ("numpy", "python-dateutil"),
    "matplotlib": ("numpy", "cycler", "kiwisolver", "pyparsing"),
    "scipy": ("numpy",),
    "python-dateutil": ("six",),
    "transformers": ("numpy", "tokenizers", "tqdm", "pyyaml"),
    "huggingface-hub": ("tqdm", "pyyaml", "filelock"),
    "scikit-learn": ("numpy", "scipy", "joblib", "threadpoolctl"),
    "accelerate": ("torch", "psutil"),
    "xformers": ("torch",),
    "jupyter-client": ("jupyter-core", "pyzmq", "tornado", "traitlets"),
    "rich": ("pygments", "markdown-it-py"),
    "aiohttp": ("yarl", "multidict", "attrs"),
}
"""What a package always brings along: where it is not listed, the list was cut."""


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield what the listings and the lines about packages in *lines* say."""
    lines = list(_without_pips_own(lines))
    at = 0
    while at < len(lines):
        line = lines[at]
        text = line.text[:600]
        if line.kind != "output":
            at += 1
        elif _HEADER.match(text):
            at = yield from _table(lines, at)
        elif _SHOW.match(text):
            at = yield from _show(lines, at)
        elif _CONDA.match(text):
            at += 1
            while at < len(lines) and lines[at].kind == "output" and lines[at].text.strip():
                at += 1
        else:
            yield from _single(text, line)
            at += 1
    yield from _json(lines)
    yield from _frozen(lines)
    yield from _poetry(lines)


def _without_pips_own(lines: Sequence[Line]) -> Iterator[Line]:
    """Leave out what ``pip debug`` lists of the packages that pip has inside itself."""
    inside = False
    for line in lines:
        inside = line.text.startswith("vendored library versions:") or (
            inside and line.text[:1] == " "
        )
        if not inside:
            yield line


def is_known_row(text: str) -> bool:
    """Tell whether *text* is a row about one of :data:`KNOWN`, which counts without a listing."""
    return bool(_LOOSE.match(text[:300]))


def of_pip(package: Package, layout: str, weight: int, number: int) -> Iterator[Said]:
    """Yield what a listed *package* tells; nothing when it cannot have that version."""
    if plausible(package.name, package.version) and package.name != "python":
        yield Said("package", package, layout, weight, number)


def of_conda(row: CondaRow, layout: str, number: int) -> Iterator[Said]:
    """Yield what a row of conda tells; a package from pip is one of pip's."""
    if row.channel == "pypi" or row.build in ("pypi_0", "pypi"):
        if row.version:
            package = Package(normal(row.name), row.version, installer="pip")
            yield from of_pip(package, layout, LISTED, number)
        return
    if plausible(row.name, row.version):
        yield Said("conda", row, layout, LISTED, number)
        if row.name == "python" and re.match(r"[23]\.\d", row.version):
            yield Said("interpreter.version", row.version, layout, LISTED, number)


def _table(lines: Sequence[Line], start: int) -> Generator[Said, None, int]:
    """Read the rows below "Package Version"; return the place after them."""
    at, rows, widths = start + 1, [], None
    closed = True
    while at < len(lines):
        text = lines[at].text[:600]
        if rule := _RULE.match(text):
            widths = len(rule[1]), len(rule[2])
        elif found := _ROW.match(text) if lines[at].kind == "output" else None:
            rest = found[3] or ""
            installer = next((w for w in ("uv", "pip", "conda", "poetry") if rest.endswith(w)), "")
            folder = re.match(r"((?:[A-Za-z]:\\|/)\S+)", rest)
            one = Package(normal(found[1]), found[2], folder[1] if folder else "", installer)
            rows.append((found[1], found[2]))
            yield from of_pip(one, "pip list", LISTED, lines[at].number)
        else:
            closed = not text.strip() or lines[at].kind != "output"
            break
        at += 1
    if closed and is_whole(rows, widths, lines[start].command):
        names = frozenset(normal(name) for name, _ in rows)
        yield Said("whole", Whole("distributions", names), "pip list", LISTED, lines[start].number)
    return at


def is_whole(rows: Sequence[tuple[str, str]], widths: tuple[int, int] | None, command: str) -> bool:
    """Tell whether *rows* are every package there is, not what somebody left of them.

    The rule under the header is as wide as the longest name and the longest version; the names
    are sorted; what a package needs is listed with it.
    """
    if not rows or _FILTER.search(command):
        return False
    longest = (
        max(len("Package"), *(len(n) for n, _ in rows)),
        max(len("Version"), *(len(v) for _, v in rows)),
    )
    if widths is not None and longest != widths:
        return False
    keys = [name.lower().replace("_", "-") for name, _ in rows]
    if sorted(keys) != keys and sorted(n.lower() for n, _ in rows) != [n.lower() for n, _ in rows]:
        return False
    known = {normal(name) for name, _ in rows}
    if len(known) != len(rows):
        return False
    if any(need not in known for name in known for need in NEEDS.get(name, ())):
        return False
    return widths is not None or bool(known & {"pip", "setuptools", "wheel"}) or len(rows) > 20  # noqa: PLR2004


def _single(text: str, line: Line) -> Iterator[Said]:
    if _REQUIREMENTS.search(line.command):
        return
    if (found := _LOOSE.match(text)) or (found := _OLD.match(text)):
        package = Package(normal(found[1]), found[2])
        yield from of_pip(package, "a line of a listing", LISTED, line.number)
    elif found := _PINNED.match(text):
        package = Package(normal(found[1]), found[2])
        yield from of_pip(package, "pip freeze", LISTED, line.number)
    elif (found := _FILE.match(text)) and (wheel := _WHEEL.search(text.replace("%2B", "+"))):
        package = Package(normal(found[1]), wheel[1])
        yield from of_pip(package, "pip freeze", LISTED, line.number)


def _frozen(lines: Sequence[Line]) -> Iterator[Said]:
    """Tell whether what ``pip freeze`` printed is whole."""
    for place, line in enumerate(lines):
        if line.kind != "command" or not re.search(r"\bpip\d? freeze|uv pip freeze", line.text):
            continue
        rows = []
        for below in lines[place + 1 :]:
            found = _TAGGED.match(below.text[:300]) or _FILE.match(below.text[:600])
            if found is None or below.kind != "output":
                break
            rows.append((found[1], "0"))
        closed = (
            place + 1 + len(rows) == len(lines) or not lines[place + 1 + len(rows)].text.strip()
        )
        if (
            closed
            and len(rows) >= FEWEST_FROZEN
            and is_whole(rows, (max(7, *(len(n) for n, _ in rows)), 7), line.text)
        ):
            names = frozenset(normal(name) for name, _ in rows)
            yield Said("whole", Whole("distributions", names), "pip freeze", LISTED, line.number)


def _show(lines: Sequence[Line], start: int) -> Generator[Said, None, int]:
    """Read one package of ``pip show``: its version stands right below its name."""
    said: dict[str, str] = {}
    at = start
    while at < len(lines) and at - start < 16:  # noqa: PLR2004
        found = _SHOWN.match(lines[at].text[:2400])
        if found is None and not re.match(r"\s{0,4}[A-Z][\w-]{2,30}:(?: |$)", lines[at].text):
            break
        if found is not None:
            if found[1] in said:
                break
            said[found[1]] = found[2].strip()
        at += 1
        if at == start + 2 and "Version" not in said:
            return at
    version = re.fullmatch(VERSION, said.get("Version", ""))
    name = normal(said["Name"])
    if version is None:
        return max(at, start + 1)
    folder = said.get("Location", "")
    folder = folder if re.match(r"[A-Za-z]:[\\/]|/|~", folder) else ""
    requires = tuple(r.strip() for r in said.get("Requires", "").split(",") if r.strip())
    package = Package(
        name,
        version[0],
        folder,
        said.get("Installer", "")[:40],
        "Editable project location" in said,
    )
    del requires  # names without versions, which is not what METADATA says
    yield from of_pip(package, "pip show", LISTED, lines[start].number)
    if folder:
        if name in ("torch", "pip", "numpy"):
            yield from paths.environment(folder, TOLD, lines[start].number)
        if system := paths.system_of(folder):
            yield Said("platform.system", system, "pip show", TOLD, lines[start].number)
    return max(at, start + 1)


_JSON = re.compile(r'\{"name": ?"([\w.-]{1,100})", ?"version": ?"([^"]{1,60})"[^{}]{0,400}\}')
_POETRY = re.compile(
    rf"\s{{0,4}}([a-z0-9][\w.-]{{1,60}})\s+(?:\(!\)\s+)?({DOTTED})\s+([A-Z(][\w(].{{3,200}})$"
)
_PIP_DEBUG = re.compile(
    r"\s{0,4}(sys\.version|sys\.executable|sys\.platform|sys\.implementation): (.{1,300})$"
)
_PIP_VERSION = re.compile(
    r"(?:pip version: )?pip \d[\w.]* from (.{1,300}?)[\\/]pip \(python ([23]\.\d{1,2})\)"
)


def _json(lines: Sequence[Line]) -> Iterator[Said]:
    """Read ``pip list --format=json``."""
    for line in lines:
        text = line.text
        if '"version"' not in text or '"name"' not in text or "build_string" in text:
            continue
        rows = _JSON.findall(text)
        for name, version in rows:
            if re.fullmatch(VERSION, version):
                yield from of_pip(
                    Package(normal(name), version), "pip list --format=json", LISTED, line.number
                )
        try:
            parsed = json.loads(text.strip())
        except (ValueError, RecursionError):
            continue
        if (
            isinstance(parsed, list)
            and len(parsed) == len(rows)
            and is_whole(rows, None, line.command)
        ):
            names = frozenset(normal(name) for name, _ in rows)
            yield Said(
                "whole",
                Whole("distributions", names),
                "pip list --format=json",
                LISTED,
                line.number,
            )


def _poetry(lines: Sequence[Line]) -> Iterator[Said]:
    """Read ``poetry show`` and what pip says of itself."""
    for line in lines:
        text = line.text[:600]
        if line.kind != "output":
            continue
        if "poetry show" in line.command and (found := _POETRY.match(text)) and "(!)" not in text:
            yield from of_pip(
                Package(normal(found[1]), found[2], installer="poetry"),
                "poetry show",
                LISTED,
                line.number,
            )
        elif found := _PIP_VERSION.search(text):
            yield Said("interpreter.version", found[2], "pip --version", LISTED, line.number)
            yield from paths.environment(found[1], TOLD, line.number)
        elif found := _PIP_DEBUG.match(text):
            yield from _debug(found[1], found[2].strip(), line.number)


def _debug(key: str, value: str, number: int) -> Iterator[Said]:
    layout = "pip debug"
    if key == "sys.version" and (version := re.match(r"([23]\.\d{1,2}\.\d{1,2}\w*)\b", value)):
        yield Said("interpreter.version", version[1], layout, PRINTED, number)
    elif key == "sys.executable" and re.match(r"[A-Za-z]:\\|/", value):
        yield Said("interpreter.executable", value, layout, PRINTED, number)
    elif key == "sys.platform" and value in ("linux", "win32", "darwin"):
        yield Said("platform.system", value, layout, PRINTED, number)
