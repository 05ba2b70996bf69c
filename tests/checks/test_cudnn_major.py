from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import Symptom

OLD = "libcudnn_ops_infer.so.8"


def lacks(library: str, name: str = "cudnn-library-missing") -> tuple[Symptom, ...]:
    return (make.symptom(name, "log", library=library),)


def env(torch: str, *others: object) -> dict[str, object]:
    built = make.build(torch)
    return {
        "torch": built,
        "platform": make.linux(),
        "distributions": (built.distribution, *others),
    }


def test_a_library_of_cudnn_8_beside_a_newer_torch(judge: Judge) -> None:
    here = env("2.5.1", make.dist("ctranslate2", "4.4.0"))
    (found,) = judge(**here, symptoms=lacks(OLD)).findings
    assert (found.name, found.severity) == ("cudnn-major-mismatch", "error")
    assert "needs cuDNN 8" in found.summary
    assert "torch brings cuDNN 9" in found.summary
    assert found.steps[0].commands.bash == ("python -m pip install 'ctranslate2>=4.5'",)


def test_a_library_of_cudnn_9_beside_an_older_torch(judge: Judge) -> None:
    here = env("2.3.1", make.dist("ctranslate2", "4.5.0"))
    (found,) = judge(**here, symptoms=lacks("libcudnn_ops.so.9.1.0")).findings
    assert "torch brings cuDNN 8" in found.summary
    assert found.steps[0].commands.bash == ("python -m pip install ctranslate2==4.4.0",)


def test_the_wheel_that_is_installed_goes_before_the_tables(judge: Judge) -> None:
    cudnn = make.dist("nvidia-cudnn-cu12", "8.9.2.26")
    here = env("2.5.1", cudnn)
    assert judge(**here, symptoms=lacks("libcudnn_ops.so.9")).status == "found"
    assert judge(**here, symptoms=lacks(OLD)).status == "clear"


def test_a_library_of_torchs_own_major_is_another_fault(judge: Judge) -> None:
    assert judge(**env("2.5.1"), symptoms=lacks("libcudnn.so.9")).status == "clear"
    other = lacks("libcublas.so.12", "shared-library-missing")
    assert judge(**env("2.5.1"), symptoms=other).status == "clear"


def test_without_torch_only_the_files_of_cudnn_8_tell(judge: Judge) -> None:
    (found,) = judge(symptoms=lacks(OLD)).findings
    assert found.confidence == "possible"
    assert judge(symptoms=lacks("libcudnn.so.9")).status == "unknown"
    assert judge().status == "unknown"


def test_the_step_cures(cure: Planner) -> None:
    plan = cure(
        **env("2.5.1", make.dist("ctranslate2", "4.4.0")),
        symptoms=lacks(OLD),
        interpreter=make.interpreter(),
    )
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "install-ctranslate2-4-5")
