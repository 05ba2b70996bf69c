from __future__ import annotations

import pytest

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import Unknown, Windows

FULL = make.symptom("winerror-dll", "log", code="1455", file=r"E:\site\torch\lib\cublas64_12.dll")


def test_the_number_of_the_error_settles_it(judge: Judge) -> None:
    (found,) = judge(symptoms=(FULL,)).findings
    assert (found.name, found.severity) == ("paging-file-too-small", "error")
    assert "cublas64_12.dll" in found.summary
    assert "num_workers=0" in found.steps[0].title
    assert "AutomaticManagedPagefile" in found.steps[1].commands.powershell[0]


def test_another_number_is_another_fault(judge: Judge) -> None:
    other = make.symptom("winerror-dll", "log", code="126", file="c10.dll")
    assert judge(symptoms=(other,)).status == "clear"
    assert judge().status == "unknown"


def test_the_step_cures(cure: Planner) -> None:
    assert cure(symptoms=(FULL,)).verdict == "healthy"


# ---- what is left, where that is known ----

GB = 1 << 30


def room(takes: float, left: float) -> Windows:
    return make.system(image_size=int(takes * GB), commit_available=int(left * GB))


def test_the_sizes_are_told_with_the_number(judge: Judge, cure: Planner) -> None:
    here = {"platform": make.windows(), "windows": room(3.5, 8), "symptoms": (FULL,)}
    (found,) = judge(**here).findings
    assert "takes up to 3.5 GB for its DLLs, and 8.0 GB are left, enough for 2" in found.summary
    assert found.evidence[1].source == "SizeOfImage of torch's DLLs"
    assert cure(**here).verdict == "healthy"


def test_not_enough_for_one_process_is_told_without_a_message(judge: Judge, cure: Planner) -> None:
    here = {"platform": make.windows(), "windows": room(3.5, 3.4), "symptoms": ()}
    (found,) = judge(**here).findings
    assert (found.name, found.severity, found.confidence) == (
        *("paging-file-too-small", "warning"),
        "possible",
    )
    assert "enough for 0" in found.summary
    assert cure(**here).verdict == "healthy"
    (found,) = judge(**here, trial=make.imported()).findings
    assert found.severity == "note"


@pytest.mark.parametrize(
    "windows",
    [
        room(3.5, 3.5),
        make.system(image_size=Unknown(), commit_available=GB),
        make.system(image_size=GB, commit_available=None),
        Unknown("no record"),
    ],
)
def test_enough_or_not_known_is_no_fault(judge: Judge, windows: Windows | Unknown) -> None:
    here = {"platform": make.windows(), "symptoms": ()}
    assert judge(**here, windows=windows).status == "clear"


def test_another_system_is_not_concerned(judge: Judge) -> None:
    other = {"platform": make.linux(), "windows": None}
    assert judge(**other, symptoms=(FULL,)).status == "clear"
