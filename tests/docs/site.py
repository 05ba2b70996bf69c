"""Sphinx over the pages, in its strictest mode: a warning, or a name without a page, ends it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.docs import pages
from torchdoctor import __version__

CONF = f"""\
project = "torchdoctor"
release = version = "{__version__}"
extensions = ["myst_parser"]
myst_heading_anchors = 3
html_theme = "alabaster"
html_theme_options = {{
    "description": "Will PyTorch work here, why not, and what to run",
    "font_family": "sans-serif",
    "head_font_family": "sans-serif",
}}
html_sidebars = {{"**": ["about.html", "searchfield.html", "relations.html"]}}
html_copy_source = False
html_show_sphinx = False
smartquotes = False  # what is quoted is what a program printed, and -- begins an option
"""
STRICT = ("-W", "-n", "-q", "--keep-going")


def build(drafts: Path, folder: Path, written: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Build *written* (path -> Markdown; default: all pages) into *folder*, by way of *drafts*.

    Returns the exit code of Sphinx, and what it complained of.
    """
    for path, text in {
        **(pages.written() if written is None else written),
        "conf.py": CONF,
    }.items():
        file = drafts / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", *STRICT, str(drafts), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.replace(f"{drafts}/", "")
