"""Build the docs: ``python -m tests.docs [FOLDER]`` (default: dist/docs)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs import site

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Build into the folder that was given; return what Sphinx ended with."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "docs"
    with tempfile.TemporaryDirectory() as drafts:
        code, said = site.build(Path(drafts), folder)
    sys.stderr.write(said)
    if code == 0:
        sys.stdout.write(f"{folder / 'index.html'}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
