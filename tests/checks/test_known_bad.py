from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet

from tests.checks import make
from tests.checks.run import said
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Gpu
from torchdoctor.tables import load

NIGHTLY = make.build("2.13.0.dev20260424+cu132")
WINDOWS = {"platform": make.windows(), "interpreter": make.interpreter(machine="win-amd64")}


def test_a_nightly_without_its_libraries_is_found(judge: Judge) -> None:
    (found,) = judge(**WINDOWS, torch=NIGHTLY).findings
    assert (found.name, found.severity) == ("torch-build-known-bad", "error")
    assert "cuDNN" in found.summary
    assert "torch==2.15.0+cu132" in found.steps[0].commands.powershell[0]


def test_the_same_nightly_elsewhere_and_the_night_after_are_quiet(judge: Judge) -> None:
    assert judge(platform=make.linux(), torch=NIGHTLY).status == "clear"
    after = make.build("2.13.0.dev20260425+cu132")
    assert judge(**WINDOWS, torch=after).status == "clear"


def test_a_build_that_imports_all_the_same_is_a_note(judge: Judge) -> None:
    (found,) = judge(**WINDOWS, torch=NIGHTLY, trial=make.imported()).findings
    assert (found.severity, found.steps) == ("note", ())


def test_conv3d_of_2_9_is_a_note_until_cudnn_is_newer(judge: Judge) -> None:
    known = {"platform": make.linux(), "torch": make.build("2.9.1+cu128")}
    old = (make.dist("nvidia-cudnn-cu12", "9.10.2.21"),)
    new = (make.dist("nvidia-cudnn-cu12", "9.15.1.9"),)
    (found,) = judge(**known, distributions=old).findings
    assert found.severity == "note"
    assert judge(**known, distributions=new).status == "clear"
    cpu = known | {"torch": make.build("2.9.1+cpu")}
    assert judge(**cpu, distributions=old).status == "clear"


def test_a_row_for_machines_without_a_gpu_needs_to_know_them(judge: Judge) -> None:
    known = {"platform": make.linux(), "torch": make.build("2.13.0+rocm7.2")}
    assert judge(**known).status == "clear"
    assert judge(**known, gpus=(Gpu("AMD Instinct MI300X", "amd"),)).status == "clear"
    assert judge(**known, gpus=()).status == "found"


def test_it_cannot_tell_without_torch(judge: Judge) -> None:
    assert judge(platform=make.linux()).status == "unknown"


def test_another_build_cures(cure: Planner) -> None:
    plan = cure(**WINDOWS, torch=NIGHTLY)
    assert (plan.verdict, names(plan.remaining)) == ("healthy", [])


def test_every_row_has_a_source_and_can_be_read() -> None:
    table = load("known_bad")
    assert table["schema"] == 1
    for row in table["bad"]:
        assert re.fullmatch(r"https://github\.com/\S+/\d+", row["source"])
        assert row["severity"] in ("error", "warning", "note")
        assert not row["says"].endswith(".")
        SpecifierSet(row["versions"])
        assert row["platforms"] == [] or set(row["platforms"]) <= {"win_amd64", "linux_x86_64"}


UNFIT = "RuntimeError: makeDeviceForHostname(): unsupported gloo device"


def test_a_defect_that_shows_in_a_message_counts_with_the_message(
    judge: Judge, cure: Planner
) -> None:
    known = WINDOWS | {"torch": make.build("2.8.0+cu128"), "trial": make.imported()}
    (found,) = judge(**known, symptoms=said(UNFIT)).findings
    assert (found.name, found.severity) == ("torch-build-known-bad", "error")
    assert "unsupported gloo device" in found.evidence[-1].value
    assert cure(**known, symptoms=said(UNFIT)).verdict == "healthy"
    assert judge(**known, symptoms=()).status == "clear"
    newer = known | {"torch": make.build("2.12.0+cu130")}
    assert judge(**newer, symptoms=said(UNFIT)).status == "clear"
    assert judge(**known | {"platform": make.linux()}, symptoms=said(UNFIT)).status == "clear"


def test_a_message_that_names_another_file_is_not_of_that_defect(judge: Judge) -> None:
    known = {"platform": make.linux(), "torch": make.build("1.8.1+cu111")}
    lost = "RuntimeError: nvrtc: error: failed to open libnvrtc-builtins.so.11.1."
    other = "RuntimeError: nvrtc: error: failed to open libnvrtc-builtins.so.12.4."
    assert judge(**known, symptoms=said(lost)).status == "found"
    assert judge(**known, symptoms=said(other)).status == "clear"


def test_a_defect_of_one_system_needs_to_know_the_system(judge: Judge) -> None:
    assert judge(torch=make.build("2.8.0+cu128"), symptoms=said(UNFIT)).status == "unknown"
