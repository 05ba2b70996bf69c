from __future__ import annotations

from typing import Any

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import Record

STORE = (
    r"C:\Users\user\AppData\Local\Packages\PythonSoftwareFoundation.Python.3.7_qbz5n2kfra8p0"
    r"\LocalCache\local-packages\Python37\site-packages\caffe2\python\serialized_test"
)


def path(length: int) -> dict[str, object]:
    file = STORE + "\\" + "x" * (length - len(STORE) - 1)
    return {"symptoms": (make.symptom("path-too-long", "log", "[Errno 2]", file=file),)}


def test_a_path_beyond_260_characters_is_too_long(judge: Judge) -> None:
    (found,) = judge(**path(270)).findings
    assert (found.name, found.severity) == ("windows-long-path", "error")
    assert "270 characters" in found.summary
    assert "LongPathsEnabled" in found.steps[0].commands.powershell[0]


def test_a_name_that_was_taken_out_is_allowed_for(judge: Judge) -> None:
    (found,) = judge(**path(255)).findings
    assert found.confidence == "likely"


def test_a_shorter_path_is_a_file_that_is_not_there(judge: Judge) -> None:
    assert judge(**path(245)).status == "clear"


def test_windows_own_number_says_it_without_a_path(judge: Judge) -> None:
    said = make.symptom("path-too-long", "log", "[WinError 206] The filename is too long")
    assert judge(symptoms=(said,)).status == "found"


def test_the_hint_of_pip_says_it_beside_a_path_whose_names_were_shortened(judge: Judge) -> None:
    hint = make.symptom("path-too-long", "log", "HINT: ... Windows Long Path support enabled")
    assert judge(symptoms=(hint,)).status == "found"
    shortened = make.symptom("path-too-long", "log", "[Errno 2]", file=STORE + "x" * 40)
    (found,) = judge(symptoms=(shortened, hint)).findings
    assert found.confidence == "likely"


def test_it_needs_messages(judge: Judge) -> None:
    assert judge().status == "unknown"


def test_a_short_path_cures(cure: Planner) -> None:
    assert cure(**path(270)).verdict == "healthy"


def half(**changes: object) -> dict[str, object]:
    whole: dict[str, Any] = {"long_paths": False, "longest": 264} | changes
    record = Record("torch", 11000, ("torch/x",), 40)
    return {"symptoms": (), "windows": make.system(**whole), "records": {"torch": record}}


def test_half_an_install_whose_longest_path_is_too_long(judge: Judge, cure: Planner) -> None:
    (found,) = judge(**half()).findings
    assert (found.name, found.severity) == ("windows-long-path", "warning")
    assert "a path of 264 characters" in found.summary
    assert cure(**half()).verdict == "healthy"


def test_long_paths_that_are_on_or_short_ones_are_in_order(judge: Judge) -> None:
    assert judge(**half(long_paths=True)).status == "clear"
    assert judge(**half(longest=259)).status == "clear"
    assert judge(**half() | {"records": {"torch": Record("torch", 11000)}}).status == "clear"
