from tests.checks.make import build, dist, imported, interpreter, linux, raised
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda, CondaPackage

TWO = {
    "platform": linux(),
    "interpreter": interpreter(),
    "distributions": (dist("torch", "2.9.1+cu128"), dist("torch", "2.13.0+cpu")),
    "torch": build("2.13.0+cpu"),
}


def test_two_metadata_folders_are_told_with_what_is_on_the_disk(judge: Judge) -> None:
    (finding,) = judge(**TWO, trial=imported()).findings
    assert (finding.name, finding.severity) == ("duplicate-install", "warning")
    assert "torch 2.9.1+cu128 and torch 2.13.0+cpu" in finding.summary
    values = {e.value for e in finding.evidence}
    assert {"torch-2.9.1+cu128.dist-info", "torch-2.13.0+cpu.dist-info", "2.13.0+cpu"} <= values
    assert finding.steps[0].commands.bash == (
        "/env/bin/python -m pip uninstall -y torch",
        "/env/bin/python -m pip uninstall -y torch",
        (
            "/env/bin/python -m pip install --force-reinstall --no-deps torch==2.13.0+cpu "
            "--index-url https://download.pytorch.org/whl/cpu"
        ),
    )


def test_an_import_that_fails_makes_it_an_error(judge: Judge) -> None:
    (finding,) = judge(**TWO, trial=raised("ImportError", "undefined symbol: x")).findings
    assert finding.severity == "error"
    assert any("undefined symbol: x" in e.value for e in finding.evidence)


def test_the_copy_without_label_is_kept_when_version_py_is_its(judge: Judge) -> None:
    torch = build("2.13.0+cu130", distribution=dist("torch", "2.13.0"))
    two = (dist("torch", "2.9.1"), dist("torch", "2.13.0"))
    (finding,) = judge(**TWO | {"torch": torch, "distributions": two}).findings
    assert finding.steps[0].commands.bash[-1].endswith("--no-deps torch===2.13.0")


def test_two_names_that_own_one_folder_are_told(judge: Judge) -> None:
    two = (dist("torch", "2.13.0+cpu"), dist("torch-nightly", "1.0.0.dev20190401"))
    (finding,) = judge(**TWO | {"distributions": two}).findings
    assert "torch-nightly 1.0.0.dev20190401" in finding.summary
    assert finding.steps[0].commands.bash[0].endswith("uninstall -y torch torch-nightly")


def test_copies_in_two_folders_are_another_matter(judge: Judge) -> None:
    two = (dist("torch", "2.13.0"), dist("torch", "2.9.1", folder="/other", user_site=True))
    assert judge(**TWO | {"distributions": two}).status == "clear"


def test_conda_beside_pip_is_another_check(judge: Judge) -> None:
    two = (dist("torch", "2.5.1", installer="conda"), dist("torch", "2.9.1"))
    assert judge(**TWO | {"distributions": two}).status == "clear"


def test_what_is_installed_must_be_known(judge: Judge) -> None:
    assert judge(torch=build()).status == "unknown"


def test_a_clean_install_cures(cure: Planner) -> None:
    plan = cure(**TWO, trial=imported())
    assert plan.verdict == "healthy"
    assert [s.step.name for s in plan.steps] == ["clean-install-torch"]


def test_two_torchvisions_are_cured_too(cure: Planner) -> None:
    two = (dist("torchvision", "0.27.0+cpu"), dist("torchvision", "0.28.0+cpu"))
    vision = build("0.28.0+cpu", "torchvision")
    plan = cure(**TWO | {"distributions": two, "torchvision": vision})
    assert plan.verdict == "healthy"
    assert "torchvision==0.28.0+cpu" in plan.steps[0].step.commands.bash[-1]


def test_of_a_mixture_that_nothing_tells_apart_the_newest_is_put_back(cure: Planner) -> None:
    two = (dist("torchvision", "0.9.1+cpu"), dist("torchvision", "0.28.0+cpu"))
    plan = cure(**TWO | {"distributions": two})
    assert plan.verdict == "healthy"
    assert "torchvision==0.28.0+cpu" in plan.steps[0].step.commands.bash[-1]


BOTH = Conda(
    (
        CondaPackage("pytorch", "0.4.1", "py37_cuda8.0.61_cudnn7.1.2_1", "pytorch"),
        CondaPackage("pytorch-nightly", "1.0.0.dev20181112", "py3.7_cuda8.0.61_0", "pytorch"),
    )
)


def test_two_records_of_conda_that_hold_torch_are_two_copies(judge: Judge, cure: Planner) -> None:
    here = {"platform": linux(), "interpreter": interpreter(kind="conda", installer="conda")}
    (finding,) = judge(**here, conda=BOTH, trial=raised("ImportError", "undefined")).findings
    assert (finding.name, finding.severity) == ("duplicate-install", "error")
    assert "pytorch 0.4.1 and pytorch-nightly 1.0.0.dev20181112" in finding.summary
    first, second = finding.steps[0].commands.bash
    assert "remove" in first
    assert "pytorch::pytorch=0.4.1" in second
    assert cure(**here, conda=BOTH).verdict == "healthy"


def test_a_package_that_only_asks_for_torch_is_no_copy(judge: Judge) -> None:
    one = CondaPackage("pytorch", "2.5.1", "cuda126_py312", "conda-forge")
    meta = CondaPackage("pytorch-gpu", "2.5.1", "cuda126_py312", "conda-forge")
    assert judge(conda=Conda((one, meta)), distributions=()).status == "clear"


def test_without_a_list_of_pip_conda_alone_is_not_enough_to_be_clear(judge: Judge) -> None:
    assert judge(conda=Conda(())).status == "unknown"
