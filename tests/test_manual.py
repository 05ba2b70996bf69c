"""The manual page has every verb and option, is roff that nothing complains of, and is shipped."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import environments
from tests.windows import shipped
from torchdoctor import cli, manual

PAGE = manual.page()
GROFF = shutil.which("groff")
MAN = shutil.which("man")


def shown(text: str) -> str:
    """Return the page in words, as it is shown to a reader."""
    assert GROFF
    done = subprocess.run(
        [GROFF, "-man", "-ww", "-Tutf8", "-P-cbou", "-rHY=0"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return " ".join(done.stdout.split())


def options(verb: str) -> list[str]:
    """Return what the verb takes, by its parser."""
    (verbs,) = (a.choices for a in cli._parser([verb])._actions if a.choices)  # noqa: SLF001
    assert isinstance(verbs, dict)
    actions = verbs[verb]._actions  # noqa: SLF001
    return [name for a in actions if a.help != argparse.SUPPRESS for name in a.option_strings]


@pytest.mark.parametrize("verb", cli.VERBS)
def test_a_verb_has_its_part_with_every_option(verb: str) -> None:
    spelled = verb.replace("-", r"\-")
    part = PAGE.partition(f".SS {spelled}\n")[2].partition("\n.S")[0]
    assert rf"\fBtorchdoctor {spelled}\fR" in part
    for name in options(verb):
        if name not in {"-h", "--help"}:
            assert rf"\fB{name.replace('-', chr(92) + '-')}\fR" in part


def test_the_page_is_ascii_and_the_same_each_time() -> None:
    assert PAGE.isascii()
    assert manual.page() == PAGE
    assert not re.search(r"^[.'](?!TH|SH|SS|TP|PP|B\b)", PAGE, re.MULTILINE)


def test_what_roff_would_take_for_its_own_is_written_so_that_it_does_not() -> None:
    assert manual._text(".ci/run") == r"\&.ci/run"  # noqa: SLF001
    assert manual._text("'a' -b \\c") == r"\(aqa\(aq \-b \ec"  # noqa: SLF001


@pytest.mark.skipif(GROFF is None, reason="there is no groff here")
def test_groff_warns_of_nothing_and_shows_what_was_meant() -> None:
    said = shown(PAGE)
    assert "torchdoctor check [option ...] [INPUT ...]" in said
    assert "--expect WHAT what this machine is for: cpu, cuda, cuda>=12.6, rocm," in said
    assert "[tool.torchdoctor] of pyproject.toml" in said
    tricky = '.TH X 1 "" "x" "y"\n.SH NAME\nx\n.SH Y\n' + manual._text(r".'a' \n `b` ^~--c")  # noqa: SLF001
    assert r".'a' \n `b` ^~--c" in shown(tricky)


@pytest.mark.skipif(GROFF is None, reason="there is no groff here")
def test_groff_would_warn_of_a_request_that_is_none() -> None:
    with pytest.raises(AssertionError):
        shown(PAGE + ".NO such\n")


@pytest.mark.network
def test_a_wheel_has_the_page_and_man_finds_it_where_it_is_installed(tmp_path: Path) -> None:
    wheel = shipped.wheel(tmp_path / "dist")
    (name,) = (n for n in zipfile.ZipFile(wheel).namelist() if n.endswith(".1"))
    assert name.endswith(".data/data/share/man/man1/torchdoctor.1")
    assert zipfile.ZipFile(wheel).read(name).decode() == PAGE
    home = environments.bare(tmp_path / "env")
    install = [sys.executable, "-m", "pip", "--python", str(home.python), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    installed = home.root / "share" / "man" / "man1" / "torchdoctor.1"
    assert installed.read_text("utf-8") == PAGE
    if MAN:
        bare = environments.environ(tmp_path, [home.root / "bin"])
        bare.pop("MANPATH", None)
        found = subprocess.run(
            [MAN, "-w", "torchdoctor"], env=bare, capture_output=True, check=True
        )
        assert Path(found.stdout.decode().strip()) == installed
