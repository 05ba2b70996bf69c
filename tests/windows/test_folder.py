"""``check --root``: a Windows installation in a folder, looked at on whatever system this is."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.windows import disk
from tests.windows.writer import Dll, write
from torchdoctor.cli import main
from torchdoctor.facts import Build, DllLoad, Interpreter, Unknown, Windows
from torchdoctor.reading import folder


def seen(root: Path, **given: Any) -> Windows:
    known = folder.read(str(root), **given).windows
    assert isinstance(known, Windows)
    return known


def answer(root: Path, **given: Any) -> DllLoad:
    load = seen(root, **given).torch
    assert isinstance(load, DllLoad)
    return load


def report(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    code = main(["check", "--format", "json", *args])
    return code, json.loads(capsys.readouterr().out)


def test_a_whole_installation_has_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk.installation(tmp_path)
    code, said = report(capsys, "--root", str(tmp_path))
    assert (code, said["findings"]) == (0, [])
    assert said["target"]["source"] == "folder"
    assert said["target"]["inputs"] == [str(tmp_path)]
    assert said["target"]["python"] == "3.11.9"


def test_an_old_runtime_is_named_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk.installation(tmp_path, disk.OLD)
    code, said = report(capsys, "--root", str(tmp_path))
    (finding,) = said["findings"]
    assert (code, finding["name"]) == (1, "vcredist-too-old")
    assert r"C:\Windows\System32\msvcp140.dll" in finding["summary"]
    assert "Visual C++ Redistributable" in said["plan"][0]["title"]


def test_the_facts_are_those_of_that_machine(tmp_path: Path) -> None:
    disk.installation(tmp_path)
    facts = folder.read(str(tmp_path))
    assert isinstance(facts.torch, Build)
    assert isinstance(facts.interpreter, Interpreter)
    assert (facts.torch.version, facts.torch.tag) == ("2.9.1+cpu", "cpu")
    assert facts.torch.origin == r"C:\Python311\Lib\site-packages\torch"
    assert facts.interpreter.executable == r"C:\Python311\python.exe"
    assert facts.interpreter.version == "3.11.9"
    assert isinstance(facts.trial, Unknown)


def test_what_differs_from_record_is_told(tmp_path: Path) -> None:
    site = disk.installation(tmp_path)
    (site / "torch/lib/shm.dll").unlink()
    (site / "torch/lib/c10.dll").write_bytes(b"MZ")
    (site / "torch/lib/caffe2_observers.dll").write_bytes(write(Dll()))
    facts = folder.read(str(tmp_path))
    assert not isinstance(facts.records, Unknown)
    record = facts.records["torch"]
    assert (record.missing, record.altered) == (("torch/lib/shm.dll",), ("torch/lib/c10.dll",))
    assert isinstance(facts.windows, Windows)
    assert facts.windows.strangers == ("caffe2_observers.dll",)


def test_a_virtual_environment_runs_the_python_that_it_was_made_from(tmp_path: Path) -> None:
    disk.put(tmp_path / "Windows/System32", disk.runtime(disk.NEW))
    disk.python(tmp_path / "Python311")
    disk.put(tmp_path / "Python311", disk.runtime(disk.OLD))
    disk.package(tmp_path / "work/env/Lib/site-packages")
    (tmp_path / "work/env/pyvenv.cfg").write_text("home = C:\\Python311\nversion = 3.11.9\n")
    load = answer(tmp_path)
    assert (load.error, load.culprit) == (1114, r"C:\Python311\msvcp140.dll")
    assert load.place == "application"


def test_dlls_in_the_environment_s_own_scripts_do_not_count(tmp_path: Path) -> None:
    disk.put(tmp_path / "Windows/System32", disk.runtime(disk.OLD))
    disk.python(tmp_path / "Python311")
    disk.package(tmp_path / "env/Lib/site-packages")
    disk.put(tmp_path / "env/Scripts", disk.runtime(disk.NEW))
    (tmp_path / "env/pyvenv.cfg").write_text("home = C:\\Python311\n")
    assert answer(tmp_path).error == 1114


def test_a_user_site_belongs_to_the_python_of_its_number(tmp_path: Path) -> None:
    disk.put(tmp_path / "Windows/System32", disk.runtime(disk.NEW))
    disk.python(tmp_path / "Users/me/AppData/Local/Programs/Python/Python311")
    disk.package(tmp_path / "Users/me/AppData/Roaming/Python/Python311/site-packages")
    facts = folder.read(str(tmp_path))
    assert isinstance(facts.interpreter, Interpreter)
    assert facts.interpreter.executable.endswith(r"\Programs\Python\Python311\python.exe")
    assert facts.interpreter.user_site
    assert isinstance(facts.windows, Windows)
    assert isinstance(facts.windows.torch, DllLoad)
    assert facts.windows.torch.loads


def test_wine_s_drive_is_found_below_its_prefix(tmp_path: Path) -> None:
    disk.installation(tmp_path / "drive_c", disk.OLD)
    assert answer(tmp_path).culprit == r"C:\Windows\System32\msvcp140.dll"


def test_folders_may_be_given_by_hand(tmp_path: Path) -> None:
    disk.python(tmp_path / "py")
    disk.package(tmp_path / "py/Lib/site-packages")
    disk.put(tmp_path / "sys", disk.runtime(disk.OLD))
    disk.put(tmp_path / "java", disk.runtime(disk.NEW))
    load = answer(
        tmp_path,
        system32=str(tmp_path / "sys"),
        python=str(tmp_path / "py"),
        path=(str(tmp_path / "java"),),
    )
    assert (load.error, load.culprit) == (1114, r"C:\Windows\System32\msvcp140.dll")


def test_path_counts_only_where_the_strict_search_has_failed(tmp_path: Path) -> None:
    disk.installation(tmp_path, None)
    disk.put(tmp_path / "java", disk.runtime(disk.NEW))
    assert answer(tmp_path).error == 126
    load = answer(tmp_path, path=(str(tmp_path / "java"),))
    assert load.by_path


def test_what_is_not_in_the_files_is_said_with_how_to_give_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk.installation(tmp_path, None)
    facts = folder.read(str(tmp_path))
    assert facts.remarks == (folder.REMARK, folder.NO_PATH)
    known = seen(tmp_path)
    for name in ("registered", "edition", "long_paths", "policy", "commit_limit", "loaded"):
        assert isinstance(getattr(known, name), Unknown), name
    _, said = report(capsys, "--root", str(tmp_path))
    (finding,) = said["findings"]
    assert (finding["name"], finding["confidence"]) == ("vcredist-missing", "likely")
    (tmp_path / "java").mkdir()
    given = ("--root", str(tmp_path), "--path-dir", str(tmp_path / "java"))
    _, said = report(capsys, *given)
    (finding,) = said["findings"]
    assert (finding["name"], finding["confidence"]) == ("vcredist-missing", "certain")
    assert folder.NO_PATH not in said["target"].get("remarks", said.get("remarks", []))


def test_path_is_no_excuse_for_what_is_not_missing(tmp_path: Path) -> None:
    disk.installation(tmp_path, disk.OLD)
    assert not answer(tmp_path).assumed


def test_without_a_system32_nothing_is_said_of_the_loader(tmp_path: Path) -> None:
    disk.python(tmp_path / "Python311")
    disk.package(tmp_path / disk.SITE)
    known = seen(tmp_path)
    assert isinstance(known.torch, Unknown)
    assert "--system32" in known.torch.reason


def test_copies_of_the_runtime_in_packages_are_found(tmp_path: Path) -> None:
    site = disk.installation(tmp_path)
    disk.put(site / "PyQt6/Qt6/bin", disk.runtime(disk.OLD))
    known = seen(tmp_path)
    assert not isinstance(known.after, Unknown)
    load = known.after["PyQt6"]
    assert (load.error, load.culprit.endswith(r"PyQt6\Qt6\bin\msvcp140.dll")) == (1114, True)
    assert isinstance(known.torch, DllLoad)
    assert known.torch.loads


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: None, "holds no torch"),
        (lambda root: (root / "torch").mkdir(), "holds no torch"),
        (
            lambda root: [disk.package(root / n / "Lib/site-packages") for n in ("a", "b")],
            "2 copies of torch",
        ),
    ],
)
def test_a_folder_that_will_not_do_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Any, said: str
) -> None:
    make(tmp_path)
    assert main(["check", "--root", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) <= 3


def test_wrong_folders_and_mixed_inputs_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--root", str(tmp_path / "gone")]) == 2
    assert "is no folder" in capsys.readouterr().err
    assert main(["check", "--root", str(tmp_path), "--python", sys.executable]) == 2
    assert "leave out" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="names differ in case only where they may")
def test_names_are_found_without_regard_to_case(tmp_path: Path) -> None:
    disk.put(tmp_path / "WINDOWS/system32", disk.runtime(disk.OLD))
    disk.python(tmp_path / "python311")
    disk.package(tmp_path / "python311/lib/site-packages")
    assert answer(tmp_path).error == 1114


def test_a_hostile_installation_raises_nothing(tmp_path: Path) -> None:
    site = disk.installation(tmp_path)
    (site / "torch/lib/a.dll").write_bytes(os.urandom(5000))
    (site / "torch/lib/b.dll").write_bytes(b"")
    (site / "torch/version.py").write_bytes(b"__version__ = '2.9.1'\n\xff\xfe\0")
    (site / "torch-2.9.1.dist-info/RECORD").write_bytes(b'\xff,,\n"unclosed\n' * 50)
    (site / "x-1.dist-info").mkdir()
    (site / "x-1.dist-info/METADATA").write_bytes(b"\0\xff")
    (site / "loop").symlink_to(site)
    load = answer(tmp_path)
    assert load.error == 193
