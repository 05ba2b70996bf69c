"""Try every scene, proofs included, and print the table: ``python -m tests.scenarios [KEY...]``."""

from __future__ import annotations

import sys

from tests import environments
from tests.scenarios import trial
from tests.scenarios.catalogue import SCENARIOS


def main(keys: list[str]) -> int:
    """Try the scenes *keys*, all when empty; return 1 when one is wrong."""
    rows = []
    try:
        for key in keys or SCENARIOS:
            row = trial.run(SCENARIOS[key], lab=True)
            sys.stderr.write(f"{'ok' if row.right else 'WRONG'} {key}: {row.found} {row.proof}\n")
            rows.append(row)
    finally:
        environments.drop_copies()
    sys.stdout.write(trial.table(rows) + "\n")
    wrong = [row.key for row in rows if not row.right]
    sys.stdout.write(f"{len(rows) - len(wrong)} of {len(rows)} right\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
