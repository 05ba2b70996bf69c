"""For setuptools alone: a wheel gets the manual page, made of the parsers that go into it."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools.command import build

PLACE = "share/man/man1"


class Build(build.build):
    """``build``, with the manual page among the data files of the distribution."""

    def run(self) -> None:
        """Build, then write the page and name it as a file to install."""
        super().run()
        root = str(Path(__file__).parents[1])
        sys.path.insert(0, root)  # a build backend keeps the folder of the project out
        try:
            from torchdoctor import manual  # noqa: PLC0415 - found only now

            text = manual.page()
        finally:
            sys.path.remove(root)
        file = Path(self.build_base) / "torchdoctor.1"
        file.write_text(text, "utf-8", newline="\n")
        others = self.distribution.data_files or []
        self.distribution.data_files = [*others, (PLACE, [str(file)])]
