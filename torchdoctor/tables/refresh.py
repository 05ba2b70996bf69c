"""Make ``releases.json`` again, from the package index that pip is configured for.

``python -m torchdoctor.tables.refresh`` asks pip for the index and reads there the pages of torch,
torchvision, torchaudio, triton and cuda-toolkit, and the metadata of wheels (``from_index``).

The same cache gives the same bytes. What the index does not tell is said at the end; a release
of which something essential is missing is left out, so that it stays unknown, and the exit code is
2. The table is written whole or not at all.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from packaging.version import Version

from torchdoctor import child
from torchdoctor.model import DoctorError
from torchdoctor.tables import load
from torchdoctor.tables.from_index import FIRST, Refresh, Row
from torchdoctor.tables.index import Index, replace


def rows_missing(rows: Iterable[Row]) -> list[str]:
    """Return which of the hand-made tables say nothing of a release that is in *rows*."""
    said = []
    for row in rows:
        version = row["version"]
        lacking = [n for n in ("builds", "archs") if version not in load(n)["torch"]]
        has_nccl = any(n.startswith("nvidia-nccl") for p in row["nvidia_pins"].values() for n in p)
        if has_nccl and version not in load("nccl")["torch"]:
            lacking.append("nccl")
        if lacking:
            tables = ", ".join(f"{name}.json" for name in lacking)
            said.append(f"torch {version} has no row in {tables}: those are made by hand")
    return said


def text_of(table: Mapping[str, Any]) -> str:
    """Return *table* as the text of its file: compact, and one row a line for the sake of diffs."""
    parts = []
    for key, value in table.items():
        if key != "source" and isinstance(value, list):
            parts.append(f"{_json(key)}:[\n" + ",\n".join(map(_json, value)) + "\n]")
        elif isinstance(value, dict):
            pairs = (f"{_json(k)}:{_json(v)}" for k, v in value.items())
            parts.append(f"{_json(key)}:{{\n" + ",\n".join(pairs) + "\n}")
        else:
            parts.append(f"{_json(key)}:{_json(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def news(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return one line for every release that is new, gone or told otherwise than before."""
    said = []
    for name in FIRST:
        old, new = _rows(before.get(name, ())), _rows(after[name])
        for version in sorted({*old, *new}, key=Version, reverse=True):
            if version not in old:
                said.append(f"new: {name} {version}")
            elif version not in new:
                said.append(f"gone: {name} {version}")
            elif old[version] != new[version]:
                said.append(f"changed: {name} {version}{_changed(old[version], new[version])}")
    return said


def _rows(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a table is a list or a mapping
    if isinstance(value, dict):
        return value
    return {row["version"] if isinstance(row, dict) else row: row for row in value}


def _changed(old: object, new: object) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        return " (" + ", ".join(k for k in new if old.get(k) != new[k]) + ")"
    return f" ({old} -> {new})"


# ---- which index --------------------------------------------------------------------------------


def settings(listing: str) -> dict[str, str]:
    """Return pip's settings from the text of ``pip config list``, by their plain names.

    The environment wins over the section of ``pip download``, which wins over ``global``.
    """
    found: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.strip().rpartition(".")
        if section not in _SECTIONS:
            continue
        try:
            text = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            continue
        found[name] = max(found.get(name, (-1, "")), (_SECTIONS.index(section), str(text)))
    return {name: text for name, (_, text) in found.items()}


_SECTIONS = ("global", "install", "download", ":env:")


def default_index(help_text: str) -> str | None:
    """Return the index that pip takes when none is set, from its help."""
    found = re.search(r"--index-url\b.*?\(default\s+(https?://[^\s)]+?)\)", help_text, re.DOTALL)
    return found[1] if found else None


def pip_says(*arguments: str) -> str:
    """Return what ``python -m pip`` prints; empty when there is no pip or it fails."""
    with tempfile.TemporaryDirectory() as folder:
        run = child.run(
            (sys.executable, "-m", "pip", *arguments),
            timeout=60,
            folder=folder,
            environ={**os.environ, "COLUMNS": "1000"},
        )
    return run.stdout.text if run.outcome == "answered" else ""


def configured() -> tuple[str, str | None]:
    """Return the index that pip is configured for and its file of certificates, if it has one.

    Extra indexes describe a machine rather than the releases: they are not read.
    """
    found = settings(pip_says("config", "list"))
    address = found.get("index-url") or os.environ.get("PIP_INDEX_URL")
    if not address:
        if found.get("no-index", "").lower() in ("1", "true", "yes", "on"):
            raise DoctorError("pip is configured to use no index; name one with --index")
        address = default_index(pip_says("download", "--help"))
    if not address:
        raise DoctorError("pip does not say which index it uses; name one with --index")
    return address, found.get("cert")


# ---- the command --------------------------------------------------------------------------------


def default_cache() -> Path:
    """Return where answers of the index are kept: below the cache folder of the user."""
    named = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(named) if named else Path.home() / ".cache") / "torchdoctor" / "index"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m torchdoctor.tables.refresh",
        description="Make the table of releases again from the package index of pip.",
        epilog="Exit code: 0 written and whole; 2 something is not known, or nothing was written.",
    )
    made.add_argument("--index", metavar="URL", help="the index (default: what pip is set to)")
    made.add_argument("--cache", metavar="DIR", type=Path, default=default_cache())
    made.add_argument("--offline", action="store_true", help="take everything from the cache")
    made.add_argument("--output", metavar="FILE", type=Path, help="default: the table itself")
    made.add_argument("--since", metavar="X.Y", help="keep the rows of older torch releases")
    made.add_argument("--pause", metavar="S", type=float, default=0.2, help="before each request")
    return made


def main(arguments: Sequence[str] | None = None) -> Literal[0, 2]:
    """Run the command and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        return _refresh(options)
    except DoctorError as error:
        print(f"Nothing was written: {error.message}", file=sys.stderr)  # noqa: T201 - the answer
        return 2


def _refresh(options: argparse.Namespace) -> Literal[0, 2]:
    output = options.output or Path(__file__).parent / "releases.json"
    if not _writable(output):
        raise DoctorError(f"{output} cannot be written here; name another file with --output")
    before = load("releases")
    address, certificates = (options.index, None) if options.index else configured()
    index = Index(
        address,
        options.cache,
        offline=options.offline,
        pause=options.pause,
        certificates=certificates or os.environ.get("PIP_CERT"),
    )
    _say(f"Reading {index.address}; answers are kept in {options.cache}")
    found = Refresh(index, before, options.since).run()
    unknown = [*found.unknown, *rows_missing(found.table["torch"])]
    try:
        replace(output, text_of(found.table))
    except OSError as error:
        raise DoctorError(f"{output}: {error.strerror}") from error
    for line in news(before, found.table):
        _say(line)
    _say(f"Wrote {output}: torch {found.table['torch'][0]['version']} is the newest.")
    _say(f"{index.requests} requests.")
    if unknown:
        _say("Not known:")
    for line in unknown:
        _say(f"  {line}")
    return 2 if unknown else 0


def _writable(output: Path) -> bool:
    return output.parent.is_dir() and os.access(output.parent, os.W_OK)


def _say(line: str) -> None:
    print(line)  # noqa: T201 - the answer of a command


if __name__ == "__main__":
    sys.exit(main())
