import pytest

from tests.checks.make import build, dist, imported, interpreter, linux, raised, symptom, torch_and
from tests.conftest import Judge, Planner
from torchdoctor.facts import Distribution

ASKS = (
    "filelock",
    "typing-extensions>=4.10.0",
    'setuptools; python_version >= "3.12"',
    'nvidia-nccl-cu12==2.27.5; platform_system == "Linux"',
    'optree>=0.13.0; extra == "optree"',
)
FILELOCK, TYPING = dist("filelock", "3.16.1"), dist("typing-extensions", "4.12.2")
SETUPTOOLS = dist("setuptools", "75.0.0")


def with_torch(*installed: Distribution, **more: object) -> dict[str, object]:
    torch = build("2.9.1+cpu", distribution=dist("torch", "2.9.1+cpu", requires=ASKS))
    return torch_and(torch, *installed, **more)


def test_what_the_import_did_not_find_is_an_error(judge: Judge) -> None:
    failed = raised("ModuleNotFoundError", "No module named 'typing_extensions'")
    (finding,) = judge(**with_torch(FILELOCK, SETUPTOOLS), trial=failed).findings
    assert (finding.name, finding.severity) == ("dependency-missing", "error")
    assert "torch needs typing-extensions>=4.10.0, which is not installed" in finding.summary
    assert finding.steps[0].commands.bash == (
        "/env/bin/python -m pip install 'typing-extensions>=4.10.0'",
    )


def test_a_message_in_a_pasted_text_counts_too(judge: Judge) -> None:
    said = symptom("module-missing", module="filelock")
    outcome = judge(**with_torch(TYPING, SETUPTOOLS), symptoms=(said,))
    assert outcome.findings[0].severity == "error"


def test_what_nobody_missed_yet_is_a_warning(judge: Judge) -> None:
    (finding,) = judge(**with_torch(FILELOCK, TYPING), trial=imported()).findings
    assert finding.severity == "warning"
    assert "setuptools" in finding.summary


def test_one_that_is_too_old_is_a_warning(judge: Judge) -> None:
    old = dist("typing-extensions", "4.5.0")
    (finding,) = judge(**with_torch(FILELOCK, SETUPTOOLS, old)).findings
    assert "4.5.0 is there" in finding.summary


def test_a_package_that_only_its_dependency_imports_is_found_by_the_error(judge: Judge) -> None:
    failed = raised("ModuleNotFoundError", "No module named 'mpmath'")
    (finding,) = judge(**with_torch(FILELOCK, TYPING, SETUPTOOLS), trial=failed).findings
    assert finding.steps[0].commands.bash == ("/env/bin/python -m pip install mpmath",)


def test_a_companions_need_is_told_with_its_owner(judge: Judge) -> None:
    vision = dist("torchvision", "0.24.1+cpu", requires=("numpy", "torch==2.9.1", "pillow>=5.3.0"))
    known = with_torch(FILELOCK, TYPING, SETUPTOOLS, vision, dist("numpy", "2.2.0"))
    known["torchvision"] = build("0.24.1+cpu", "torchvision", distribution=vision)
    failed = {"torchvision": raised("ModuleNotFoundError", "No module named 'PIL'", "torchvision")}
    (finding,) = judge(**known, companion_trials=failed).findings
    assert "torchvision needs pillow>=5.3.0" in finding.summary
    assert finding.severity == "error"


def test_a_whole_set_is_in_order(judge: Judge) -> None:
    assert judge(**with_torch(FILELOCK, TYPING, SETUPTOOLS)).status == "clear"


def test_markers_are_those_of_the_python_under_test(judge: Judge) -> None:
    older = with_torch(FILELOCK, TYPING, interpreter=interpreter("3.11.9"))
    assert judge(**older).status == "clear"


@pytest.mark.parametrize("module", ["_ctypes", "torch._C", "numpy.core", "my_module"])
def test_modules_that_are_no_dependency_are_not_told(judge: Judge, module: str) -> None:
    failed = raised("ImportError", f"No module named '{module}'")
    known = with_torch(FILELOCK, TYPING, SETUPTOOLS, dist("numpy", "2.2.0"))
    assert judge(**known, trial=failed).status == "clear"


def test_a_torch_without_numpy_works(judge: Judge) -> None:
    said = symptom("module-missing", module="numpy")
    assert judge(**with_torch(FILELOCK, TYPING, SETUPTOOLS), symptoms=(said,)).status == "clear"


def test_what_is_installed_must_be_known(judge: Judge) -> None:
    assert judge(torch=build(), platform=linux(), interpreter=interpreter()).status == "unknown"


def test_installing_them_cures(cure: Planner) -> None:
    plan = cure(**with_torch())
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)
