"""From a path to a module: encodings, notebooks, comments, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchdoctor.lint import looking, source
from torchdoctor.lint.rule import all_rules
from torchdoctor.lint.settings import Settings
from torchdoctor.model import DoctorError

AMP = "import torch\nscaler = torch.cuda.amp.GradScaler()"


def look(path: Path, settings: Settings | None = None) -> looking.Looked:
    return looking.look([str(path)], all_rules(), settings)


def names(looked: looking.Looked) -> list[str]:
    return [finding.name for finding in looked.findings()]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"def f(:\n", "line 1: invalid syntax"),
        (b"x = '\xff'\n", "not utf-8-sig: byte 5 is wrong"),
        (b"# -*- coding: klingon -*-\n", "unknown encoding klingon"),
        (b"\xff\xfex\x00", "UTF-16, which Python does not read"),
        (b"x = 1\x00", "null bytes"),
        (b"#" * (source.LARGEST + 1), "larger than 4 MB"),
        (b"(" * 100_000, "line 1: too many nested parentheses"),
        (b"x = " + b"-" * 200_000 + b"1", "nested too deeply"),
        (b"print 'python 2'\n", "line 1: Missing parentheses"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(raw: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(raw)
    looked = look(file)
    assert looked.found == []
    (line,) = looked.unread
    assert line.startswith(f"{file}: ")
    assert said in line
    assert "\n" not in line
    assert looked.named_unread == 1


@pytest.mark.parametrize(
    "deep",
    [
        b"+".join([b"1"] * 40_000),
        b"x" + b".x" * 40_000,
        b"x(" * 150 + b")" * 150,
        b" or ".join([b"rank == 0"] * 9_000),
        b"not " * 5_000 + b"rank",
    ],
)
def test_what_is_nested_deeply_is_read_or_refused(deep: bytes, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(
        b"import torch.distributed as dist\ndist.init_process_group()\n"
        b"if " + deep + b":\n    dist.barrier()\n"
    )
    looked = look(file)
    assert looked.crashed == {}
    assert not looked.unread or "nested too deeply" in looked.unread[0]


def test_one_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch.cuda.amp\n(")
    (tmp_path / "b.py").write_text(AMP)
    looked = look(tmp_path)
    assert names(looked) == ["deprecated-amp"]
    assert (len(looked.unread), looked.named_unread) == (1, 0)


@pytest.mark.parametrize(
    "raw",
    [
        ("# coding: latin-1\n# \xe9\n" + AMP).encode("latin-1"),
        b"\xef\xbb\xbf" + AMP.encode(),
        AMP.replace("\n", "\r\n").encode(),
        AMP.replace("\n", "\r").encode(),
        ("x = '\\d'\n" + AMP).encode(),  # a warning of the compiler is not ours to print
    ],
    ids=["latin-1", "mark", "windows", "old mac", "escape"],
)
def test_every_encoding_and_end_of_line_of_python_is_read(raw: bytes, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(raw)
    assert names(look(file)) == ["deprecated-amp"]


def test_a_place_counts_characters_from_one(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("import torch\nüü = torch.cuda.amp.GradScaler()\n", encoding="utf-8")
    place = look(file).findings()[0].location
    assert place is not None
    assert (place.file, place.line, place.column) == (str(file), 2, 6)


# ---- folders ------------------------------------------------------------------------------------


def test_folders_of_others_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    for folder in ("src", "venv/lib", ".git", "my-env", "src/node_modules", "src/legacy"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text(AMP)
    (tmp_path / "my-env" / "pyvenv.cfg").touch()
    (tmp_path / "src" / "notes.txt").write_text(AMP)
    assert names(look(tmp_path)) == ["deprecated-amp"] * 2
    assert names(look(tmp_path / "venv" / "lib")) == ["deprecated-amp"]
    assert names(look(tmp_path, Settings(exclude=("legacy",)))) == ["deprecated-amp"]
    assert names(look(tmp_path, Settings(exclude=("src/leg*",)))) == ["deprecated-amp"]


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DoctorError, match="does not exist"):
        look(tmp_path / "none.py")


def test_a_file_in_which_no_rule_has_a_word_needs_no_syntax_tree(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print 1")
    looked = look(tmp_path)
    assert (looked.files, looked.unread) == (1, [])


# ---- comments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "quiet"),
    [
        ("torch.cuda.amp.GradScaler()  # torchdoctor: ignore", True),
        ("torch.cuda.amp.GradScaler()  # torchdoctor: ignore[deprecated-amp]", True),
        ("torch.cuda.amp.GradScaler()  # torchdoctor: ignore[precision]", True),
        ("torch.cuda.amp.GradScaler()  # torchdoctor: ignore[data-parallel]", False),
        ("# torchdoctor: ignore[deprecated-amp]\ntorch.cuda.amp.GradScaler()", True),
        ("# torchdoctor: ignore[deprecated-amp]\n\ntorch.cuda.amp.GradScaler()", False),
        ("torch.cuda.amp.GradScaler(\n    2.0,\n)  # torchdoctor: ignore", True),
        ("f(\n    torch.cuda.amp.GradScaler(),  # torchdoctor: ignore\n    1)", True),
        ("torch.cuda.amp.GradScaler()\n# torchdoctor: ignore-file[deprecated-amp]", True),
        ("# torchdoctor: ignore-file\ntorch.cuda.amp.GradScaler()", True),
        ("# torchdoctor: ignore-file[launch]\ntorch.cuda.amp.GradScaler()", False),
    ],
)
def test_a_comment_turns_a_rule_off_where_it_stands(
    code: str,
    quiet: bool,  # noqa: FBT001 - one column of a table
    tmp_path: Path,
) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"import torch\n{code}\n")
    assert names(look(file)) == ([] if quiet else ["deprecated-amp"])


def test_rules_are_left_out_for_files_that_match(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text(AMP)
    (tmp_path / "b.py").write_text(AMP)
    settings = Settings(per_file={"tests/*": ("deprecated-amp",)})
    places = [finding.location for finding in look(tmp_path, settings).findings()]
    assert [place.file for place in places if place] == [str(tmp_path / "b.py")]


# ---- notebooks ----------------------------------------------------------------------------------


def notebook(*cells: str | list[str]) -> str:
    kinds = [{"cell_type": "markdown", "source": "# Title"}]
    kinds += [{"cell_type": "code", "source": cell} for cell in cells]  # type: ignore[dict-item]
    return json.dumps({"cells": kinds, "nbformat": 4})


def test_a_notebook_is_read_cell_by_cell(tmp_path: Path) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(
        notebook(
            ["%matplotlib inline\n", "import torch\n", "!pip install x\n", "await thing()"],
            "%%bash\nls -l",
            "broken = (",
            "%%time\nfiles = !ls\nscaler = torch.cuda.amp.GradScaler()\nmodel?",
        )
    )
    looked = look(file)
    (finding,) = looked.findings()
    place = finding.location
    assert place is not None
    assert (place.file, place.line, place.column) == (str(file), 3, 10)
    assert finding.where == {"cell": 5}
    assert finding.evidence[0].source == f"{file}:cell 5:3:10"
    (line,) = looked.unread
    assert line.startswith(f"{file}: cell 4: line 1: ")


def test_a_notebook_needs_no_main_guard_and_is_not_mended(tmp_path: Path) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(
        notebook(
            "import torch\nfrom torch.utils.data import DataLoader\n"
            "loader = DataLoader(data, num_workers=2)\nfor x in loader:\n    print(x)",
            "torch.cuda.amp.GradScaler()",
        )
    )
    looked = look(file)
    assert names(looked) == ["deprecated-amp"]
    assert list(looking.mended(looked)) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', "[" * 100_000])
def test_what_is_no_notebook_is_said(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(text)
    assert look(file).unread == [f"{file}: no notebook of format 4"]
