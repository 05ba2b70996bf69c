from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import ErrorText, Symptom

LIB = r"C:\Users\user\venv\Lib\site-packages\torch\lib"
WINDOWS = {"platform": make.windows()}


def failed(file: str, code: str = "126") -> tuple[Symptom, ...]:
    return (make.symptom("winerror-dll", "log", code=code, file=rf"{LIB}\{file}"),)


@pytest.mark.parametrize(
    ("file", "version", "name", "mended"),
    [
        ("fbgemm.dll", "2.4.0+cpu", "libomp140-missing", "2.4.1"),
        ("shm.dll", "2.3.0+cpu", "mkl-dll-not-found", "2.3.1"),
    ],
)
def test_a_dll_of_one_release_tells_what_is_absent(
    judge: Judge, file: str, version: str, name: str, mended: str
) -> None:
    (found,) = judge(**WINDOWS, torch=make.build(version), symptoms=failed(file)).findings
    assert (found.name, found.severity, found.confidence) == (name, "error", "certain")
    assert f"torch=={mended}" in found.steps[0].commands.bash[0]


def test_without_the_version_the_dll_alone_is_likely(judge: Judge) -> None:
    (found,) = judge(symptoms=failed("fbgemm.dll")).findings
    assert (found.name, found.confidence) == ("libomp140-missing", "likely")


@pytest.mark.parametrize(
    ("file", "version", "code"),
    [
        ("fbgemm.dll", "2.5.1+cpu", "126"),
        ("shm.dll", "2.4.0+cpu", "126"),
        ("fbgemm.dll", "2.4.0+cpu", "1114"),
        ("c10.dll", "2.4.0+cpu", "126"),
    ],
)
def test_another_release_dll_or_number_tells_nothing(
    judge: Judge, file: str, version: str, code: str
) -> None:
    here = WINDOWS | {"torch": make.build(version), "symptoms": failed(file, code)}
    assert judge(**here).status == "clear"


@pytest.mark.parametrize(
    "said",
    [
        make.symptom("vc-runtime-not-found", "log"),
        make.symptom("runtime-dll-not-found", "log", file="msvcp140.dll"),
    ],
)
def test_a_runtime_that_is_not_there_is_installed(judge: Judge, said: Symptom) -> None:
    (found,) = judge(**WINDOWS, symptoms=(*failed("c10.dll"), said)).findings
    assert (found.name, found.severity) == ("vcredist-missing", "error")
    assert found.steps[0].commands.powershell[0].startswith("winget install")


def test_it_is_quiet_where_torch_works_or_is_not_windows(judge: Judge) -> None:
    runtime = make.symptom("vc-runtime-not-found", "log")
    assert judge(**WINDOWS, symptoms=(runtime,)).status == "clear"
    works = {"trial": make.imported(), "symptoms": failed("fbgemm.dll")}
    assert judge(**WINDOWS, **works).status == "clear"
    assert judge(platform=make.linux(), symptoms=failed("fbgemm.dll")).status == "clear"
    assert judge().status == "unknown"


def test_the_steps_cure(cure: Planner) -> None:
    runtime = make.symptom("vc-runtime-not-found", "log")
    for symptoms in (failed("fbgemm.dll"), failed("shm.dll"), (*failed("c10.dll"), runtime)):
        assert cure(**WINDOWS, symptoms=symptoms).verdict == "healthy"


# ---- frozen programs ----


def frozen(folder: str, code: str = "126") -> tuple[Symptom, ...]:
    file = rf"{folder}\cudnn_adv_infer64_8.dll"
    return (make.symptom("winerror-dll", "log", code=code, file=file),)


@pytest.mark.parametrize("code", ["126", "127"])
@pytest.mark.parametrize(
    "folder",
    [
        r"C:\Users\me\AppData\Local\Temp\_MEI12345\torch\lib",
        r"D:\dist\app\_internal\torch\lib",
        r"D:\build\out\lib\torch\lib",
    ],
)
def test_a_frozen_program_was_built_without_a_dll(
    judge: Judge, cure: Planner, folder: str, code: str
) -> None:
    (found,) = judge(**WINDOWS, symptoms=frozen(folder, code)).findings
    assert (found.name, found.confidence) == ("frozen-app-missing-dll", "likely")
    assert "cudnn_adv_infer64_8.dll of torch without a" in found.summary
    assert found.steps[0].name == "bundle-the-dll"
    assert cure(**WINDOWS, symptoms=frozen(folder, code)).verdict == "healthy"


def test_an_environment_is_no_frozen_program(judge: Judge) -> None:
    assert judge(**WINDOWS, symptoms=frozen(LIB, "127")).status == "clear"
    below = r"D:\_internal\Lib\site-packages\torch\lib"
    assert judge(**WINDOWS, symptoms=frozen(below)).status == "clear"
    old = frozen(r"D:\app\_internal\torch\lib", "1114")
    assert judge(**WINDOWS, symptoms=old).status == "clear"


# ---- torch for Intel's GPUs ----


def test_a_torch_for_intel_s_gpus_lacks_the_oneapi_runtime(judge: Judge, cure: Planner) -> None:
    beside = (make.dist("torch", "2.1.0"), make.dist("intel-extension-for-pytorch", "2.1.30"))
    here = WINDOWS | {"torch": make.build("2.1.0"), "distributions": beside}
    said = failed("backend_with_compiler.dll")
    (found,) = judge(**here, symptoms=said).findings
    assert (found.name, found.confidence) == ("xpu-runtime-missing", "likely")
    assert "dpcpp-cpp-rt" in found.steps[0].commands.powershell[0]
    assert cure(**here, symptoms=said).verdict == "healthy"
    built = WINDOWS | {"torch": make.build("2.9.1+xpu", tag="xpu"), "distributions": ()}
    (found,) = judge(**built, symptoms=said).findings
    assert found.name == "xpu-runtime-missing"


def test_another_build_or_number_is_not_about_oneapi(judge: Judge) -> None:
    said = failed("backend_with_compiler.dll")
    here = WINDOWS | {"torch": make.build("2.9.1+cpu"), "distributions": ()}
    assert judge(**here, symptoms=said).status == "clear"
    built = WINDOWS | {"torch": make.build("2.9.1+xpu", tag="xpu")}
    assert judge(**built, symptoms=failed("c10.dll", "1114")).status == "clear"


DIST = r"C:\Users\user\project\dist\main\torch\lib\torch_cpu.dll"


def test_pyinstallers_loader_among_the_frames_tells_a_frozen_program(judge: Judge) -> None:
    said = (make.symptom("winerror-dll", "log", code="126", file=DIST),)
    frames = '  File "PyInstaller\\loader\\pyimod03_importers.py", line 540, in exec_module'
    trial = make.raised("OSError", "[WinError 126]")
    frozen = replace(trial, error=ErrorText("OSError", "[WinError 126]", frames))
    (found,) = judge(**WINDOWS, symptoms=said, trial=frozen).findings
    assert found.name == "frozen-app-missing-dll"
    assert judge(**WINDOWS, symptoms=said, trial=trial).findings == ()
    assert judge(**WINDOWS, symptoms=failed("torch_cpu.dll"), trial=frozen).findings == ()
