"""Try the recipes, proofs included: ``python -m tests.lab run [NAME...]``, or ``list``.

``interrupted`` stands for all trials of an interrupted upgrade; they take a minute each. Without a
name, what downloads gigabytes (``torch-1.13.1`` and so on) is left out.
"""

from __future__ import annotations

import subprocess
import sys

from tests import environments
from tests.lab import interrupted
from tests.lab.catalogue import OLD, RECIPES
from tests.scenarios import trial

TRIALS = {s.key: s for s in map(interrupted.scenario, range(interrupted.TRIALS))}
EVERY = RECIPES | TRIALS | OLD


def run(names: list[str]) -> int:
    """Try the recipes *names*, all when empty; return 1 when one is wrong."""
    rows, broken = [], []
    wanted = [key for name in names for key in (TRIALS if name == "interrupted" else [name])]
    try:
        for name in wanted or [name for name in EVERY if name not in OLD]:
            try:
                row = trial.run(EVERY[name], lab=True)
            except LookupError as reason:
                sys.stderr.write(f"skipped {name}: {reason}\n")
                continue
            except (AssertionError, subprocess.TimeoutExpired) as failure:  # no report at all, say
                sys.stderr.write(f"WRONG {name}: {failure}\n")
                broken.append(name)
                continue
            said = f"expected {row.expected}, found {row.found} {row.proof}"
            sys.stderr.write(f"{'ok' if row.right else 'WRONG'} {name}: {said}\n")
            rows.append(row)
    finally:
        environments.drop_copies()
    wrong = [row.key for row in rows if not row.right]
    sys.stdout.write(
        trial.table(rows) + f"\n{len(rows) - len(wrong)} of {len(rows) + len(broken)} right\n"
    )
    return 1 if wrong or broken else 0


def main(arguments: list[str]) -> int:
    """Do what *arguments* say; return the exit code."""
    match arguments:
        case ["list"]:
            for recipe in EVERY.values():
                sys.stdout.write(f"{recipe.key}: {recipe.title}\n")
            return 0
        case ["run", *names] if set(names) <= {*EVERY, "interrupted"}:
            return run(names)
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
