"""Lint the training scripts of ``public.toml``, and say where the answer is another than by hand.

    python -m tests.lint.public FOLDER [PATTERN]

FOLDER keeps a clone of each repository, which is made where it is missing; PATTERN says how its
git directory is called there (default ``{owner}+{name}.git``). Nothing of them is run, and nothing
is kept in this repository. The exit code is 1 when one answer differs.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from torchdoctor.lint import looking
from torchdoctor.lint.rule import all_rules
from torchdoctor.lint.source import read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NEAR = 5
"""A finding may stand so many lines from the one that was noted: at another part of a call."""


@dataclass(frozen=True)
class Public:
    """One script, and what was read in it by hand."""

    repository: str
    commit: str
    path: str
    fires: tuple[str, ...]
    quiet: tuple[str, ...]


def table() -> list[Public]:
    """Return the scripts of public.toml."""
    document = tomllib.loads(Path(__file__).with_name("public.toml").read_text("utf-8"))
    return [
        Public(*_at(entry["at"]), fires=tuple(entry["fires"]), quiet=tuple(entry["quiet"]))
        for entry in document["script"]
    ]


def _at(said: str) -> tuple[str, str, str]:
    repository, commit, path = said.split(" ")
    return repository, commit, path


def text(script: Public, folder: Path, pattern: str) -> bytes:
    """Return the *script* from its clone in *folder*, which is made first if it is not there."""
    owner, name = script.repository.split("/")
    clone = folder / pattern.format(owner=owner, name=name)
    if not clone.exists():
        address = f"https://github.com/{script.repository}"
        subprocess.run(["git", "clone", "-q", "--bare", address, str(clone)], check=True)
    show = ["git", f"--git-dir={clone}", "show", f"{script.commit}:{script.path}"]
    return subprocess.run(show, capture_output=True, check=True).stdout


def wrong(script: Public, raw: bytes) -> list[str]:
    """Return in what the findings in *script* are other than by hand."""
    found = looking.findings(read(script.path, raw), all_rules())
    seen = [(f.finding.name, f.finding.location, f.finding.severity) for f in found]
    said = []
    for entry in script.fires:
        name, _, line = entry.partition(":")
        near = [at for at in seen if at[0] == name and _near(at[1], line)]
        if not near:
            said.append(f"missed {entry}")
    for entry in script.quiet:
        if entry == "*":
            said += [f"false {name}" for name, _, _ in seen if name not in script.fires]
        name = entry.rstrip("!")
        grave = [at for at in seen if at[0] == name and (entry == name or at[2] != "note")]
        said += [f"false {name} in line {getattr(at[1], 'line', None)}" for at in grave]
    return said


def _near(place: object, line: str) -> bool:
    return not line or abs(getattr(place, "line", 0) - int(line)) <= NEAR


def main() -> int:
    """Look at all of them, print, and return the exit code."""
    folder = Path(sys.argv[1])
    pattern = sys.argv[2] if len(sys.argv) > 2 else "{owner}+{name}.git"
    differ = 0
    for script in table():
        said = wrong(script, text(script, folder, pattern))
        differ += bool(said)
        right = f"{len(script.fires)} found, {len(script.quiet)} quiet"
        print(f"{script.repository} {script.path}: {'; '.join(said) or right}")  # noqa: T201
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
