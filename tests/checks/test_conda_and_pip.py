from dataclasses import replace

from tests.checks.make import build, dist, imported, interpreter, linux, raised
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda, CondaPackage

RECORD = CondaPackage("pytorch", "1.11.0", "py3.8_cuda11.3_cudnn8.2.0_0", "pytorch")
PYTHON = interpreter("3.8.20", kind="conda", installer="conda")
MIXED = {
    "platform": linux(),
    "interpreter": PYTHON,
    "conda": Conda((RECORD,), "/env", torch_files=9000),
    "distributions": (dist("torch", "2.4.1+cu121"),),
    "torch": build("2.4.1+cu121"),
}


def test_pips_torch_over_condas_is_told_with_both_versions(judge: Judge) -> None:
    (finding,) = judge(**MIXED, trial=imported()).findings
    assert (finding.name, finding.severity) == ("conda-pip-mix", "warning")
    assert "pytorch 1.11.0" in finding.summary
    assert "torch 2.4.1+cu121" in finding.summary
    keep_pip, keep_conda = finding.steps
    assert keep_pip.commands.bash == (
        "conda remove -y --force -p /env pytorch",
        (
            "/env/bin/python -m pip install --force-reinstall --no-deps torch==2.4.1+cu121 "
            "--index-url https://download.pytorch.org/whl/cu121"
        ),
    )
    assert keep_conda.commands.bash == (
        "/env/bin/python -m pip uninstall -y torch",
        "conda install -y --force-reinstall -p /env pytorch::pytorch=1.11.0",
    )


def test_a_failed_import_makes_it_an_error(judge: Judge) -> None:
    failed = raised("OSError", "libtorch_cuda_cu.so: cannot open shared object file")
    (finding,) = judge(**MIXED, trial=failed).findings
    assert finding.severity == "error"


def test_condas_copy_is_kept_when_it_is_the_one_imported(cure: Planner) -> None:
    torch = build("1.11.0", distribution=dist("torch", "1.11.0", installer="conda"))
    plan = cure(**MIXED | {"torch": torch})
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "keep-conda-torch")


def test_a_list_of_conda_alone_tells_it_too(judge: Judge) -> None:
    listed = (RECORD, CondaPackage("torch", "2.4.1", "pypi_0", "pypi"))
    outcome = judge(conda=Conda(listed), interpreter=PYTHON, platform=linux())
    assert [f.name for f in outcome.findings] == ["conda-pip-mix"]


def test_a_companion_of_pip_over_condas_is_told(judge: Judge) -> None:
    conda = Conda((CondaPackage("torchvision", "0.16.0", "py311", "pytorch"),))
    found = judge(**MIXED | {"conda": conda, "distributions": (dist("torchvision", "0.19.0"),)})
    assert "torchvision 0.19.0" in found.findings[0].summary


def test_a_conda_python_with_torch_of_pip_alone_is_in_order(judge: Judge) -> None:
    assert judge(**MIXED | {"conda": Conda(())}).status == "clear"


def test_metadata_that_conda_wrote_is_in_order(judge: Judge) -> None:
    own = (dist("torch", "1.11.0", installer="conda"),)
    assert judge(**MIXED | {"distributions": own}).status == "clear"


def test_an_egg_info_of_conda_is_in_order(judge: Judge) -> None:
    own = (dist("torch", "1.11.0", installer="", metadata="torch-1.11.0-py3.8.egg-info"),)
    assert judge(**MIXED | {"distributions": own}).status == "clear"


def test_a_copy_in_the_user_site_is_another_check(judge: Judge) -> None:
    user = (replace(dist("torch", "2.4.1"), user_site=True, folder="/home/u/.local"),)
    assert judge(**MIXED | {"distributions": user}).status == "clear"


def test_without_conda_there_is_nothing_to_mix(judge: Judge) -> None:
    assert judge(**MIXED | {"conda": None}).status == "clear"


def test_what_conda_has_must_be_known(judge: Judge) -> None:
    assert judge(torch=build()).status == "unknown"


def test_keeping_pips_copy_cures(cure: Planner) -> None:
    plan = cure(**MIXED, trial=imported())
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "keep-pip-torch")


def test_a_listing_that_names_no_installer_tells_it_by_the_version(judge: Judge) -> None:
    listed = dist("torch", "2.4.1", installer="")
    (finding,) = judge(**MIXED | {"distributions": (listed,)}).findings
    assert finding.name == "conda-pip-mix"
    same = dist("torch", "1.11.0", installer="")
    assert judge(**MIXED | {"distributions": (same,)}).status == "clear"
    pre = dist("torch", "1.11.0a0", installer="")  # as the metadata of conda's own copies says
    assert judge(**MIXED | {"distributions": (pre,)}).status == "clear"
    other = dist("torch", "1.12.0a0", installer="")
    assert judge(**MIXED | {"distributions": (other,)}).status == "found"
