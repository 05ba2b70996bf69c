from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.imports import before_torch, given
from torchdoctor.model import DoctorError


def script(folder: Path, text: str) -> str:
    file = folder / "train.py"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_what_comes_before_torch_is_read_in_order(tmp_path: Path) -> None:
    text = "import os, PyQt6.QtCore\nfrom pyarrow import csv\nimport torch\nimport pandas\n"
    assert before_torch(script(tmp_path, text)) == ["os", "PyQt6.QtCore", "pyarrow"]


def test_a_part_of_torch_or_a_companion_ends_it(tmp_path: Path) -> None:
    text = "import a\nfrom torchvision.models import x\nimport b\n"
    assert before_torch(script(tmp_path, text)) == ["a"]


def test_what_runs_at_once_counts_and_a_function_does_not(tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\n"
        "try:\n    import a\nexcept ImportError:\n    import b\n"
        "if True:\n    import c\n"
        "def f():\n    import d\n"
        "from . import own\n"
    )
    assert before_torch(script(tmp_path, text)) == ["a", "c"]


def test_modules_of_the_program_itself_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "helper.py").touch()
    (tmp_path / "parts").mkdir()
    assert before_torch(script(tmp_path, "import helper\nimport parts.x\nimport PyQt5\n")) == [
        "PyQt5"
    ]


@pytest.mark.parametrize("text", ["import (", "import a\0", "(" * 5000])
def test_what_is_no_program_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(DoctorError, match="no program"):
        before_torch(script(tmp_path, text))
    with pytest.raises(DoctorError, match="cannot be read"):
        before_torch(str(tmp_path / "gone.py"))


def test_names_given_come_first_each_once(tmp_path: Path) -> None:
    file = script(tmp_path, "import a\nimport b\n")
    assert given(["b, c", "b"], file) == ("b", "c", "a")
    with pytest.raises(DoctorError, match="no name of a module"):
        given(["PyQt6; rm"], None)
