from __future__ import annotations

import pytest

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor import effects
from torchdoctor.facts import Facts


def damaged(file: str, kind: str = "checksum") -> dict[str, object]:
    return {"symptoms": (make.symptom("archive-damaged", "log", file=file, kind=kind),)}


def test_a_damaged_file_of_the_wheel_is_the_cache(judge: Judge) -> None:
    (found,) = judge(**damaged("torch/lib/cublasLt64_11.dll")).findings
    assert (found.name, found.severity, found.confidence) == (
        "pip-cache-corrupt",
        "error",
        "certain",
    )
    assert "torch/lib/cublasLt64_11.dll" in found.summary
    assert found.steps[0].commands.bash == ("python -m pip cache purge",)


@pytest.mark.parametrize(
    "file", ["torch==2.4.0", "nvidia/cudnn/lib/libcudnn.so.9", "torch-2.4.0.dist-info/RECORD"]
)
def test_wheels_of_torch_and_its_libraries_count(judge: Judge, file: str) -> None:
    assert judge(**damaged(file, "hash")).status == "found"


@pytest.mark.parametrize("file", ["arr_0.npy", "data/torchvision.csv", "torchmetrics==1.0"])
def test_an_archive_of_something_else_is_not_pips(judge: Judge, file: str) -> None:
    assert judge(**damaged(file)).status == "clear"


def test_it_needs_messages(judge: Judge) -> None:
    assert judge().status == "unknown"
    assert judge(symptoms=()).status == "clear"


def test_emptying_the_cache_cures(cure: Planner) -> None:
    plan = cure(**damaged("torch/lib/cublasLt64_11.dll"))
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)


def test_emptying_the_cache_settles_nothing_else() -> None:
    other = make.symptom("no-kernel-image", "log", code="209")
    facts = Facts(symptoms=(*damaged("torch/lib/c10.dll")["symptoms"], other))  # type: ignore[misc]
    assert effects.settled("archive-damaged")(facts).symptoms == (other,)
