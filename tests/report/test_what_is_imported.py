"""Formats that people do not look at in a terminal cost no import of what draws there."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("render", "without"),
    [
        ("as_json.render(document.failure('usage', 'x'))", ("rich", "importlib.metadata")),
        ("text.render(document.failure('usage', 'x'), quiet=True)", ("rich",)),
    ],
)
def test_json_and_a_quiet_answer_need_no_rich(render: str, without: tuple[str, ...]) -> None:
    code = (
        "import sys; from torchdoctor.report import as_json, document, text; "
        f"print({render}); print([m for m in sys.modules if m.startswith({without!r})])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines()[-1] == "[]"


HEAVY = (
    *(
        "torchdoctor.reading.pasted",
        "torchdoctor.inputs",
        "torchdoctor.compare",
        "torchdoctor.lint",
    ),
    *("torchdoctor.hang", "torchdoctor.training", "torchdoctor.distributed.", "importlib.metadata"),
    *("torchdoctor.windows", "torchdoctor.redact", "torchdoctor.shards", "argcomplete"),
)
"""What a quick look at a live machine has no use for."""


def test_a_quick_look_reads_no_texts_and_compares_nothing() -> None:
    code = (
        "import sys; from torchdoctor import cli; "
        "cli.main(['check', '--no-import', '--quiet', '--python', sys.executable]); "
        f"print([m for m in sys.modules if m.startswith({HEAVY!r})])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines()[-1] == "[]"


def test_no_check_builds_a_step_while_it_is_imported() -> None:
    code = (
        "import sys; from torchdoctor import lazily, registry; lazily.begin(); "
        "registry.all_checks(); print(sorted(m for m in sys.modules if "
        "type(sys.modules[m]).__name__ != '_LazyModule' and "
        "(m in lazily.MODULES or m.startswith(lazily.TABLES))))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines()[-1] == "[]"


def test_what_waits_is_there_once_it_is_asked_for() -> None:
    code = (
        "import sys; from torchdoctor import lazily; lazily.begin(); "
        "from torchdoctor import choose; from torchdoctor.tables import releases; "
        "kinds = lambda: [type(m).__name__ for m in (choose, releases)]; before = kinds(); "
        "choose.choose, releases.torch_release; print(before, kinds())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    waiting, there = ["_LazyModule"] * 2, ["module"] * 2
    assert answer.stdout == f"{waiting} {there}\n"
