from tests.checks.make import imported, interpreter, linux, raised
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda, CondaPackage


def stack(**channels: str) -> dict[str, object]:
    versions = {"pytorch": "2.5.1", "torchvision": "0.20.1", "mkl": "2023.1.0"}
    packages = [
        CondaPackage(name.replace("_", "-"), versions.get(name, "12.1"), "", channel)
        for name, channel in channels.items()
    ]
    return {
        "conda": Conda(tuple(packages), "/env"),
        "interpreter": interpreter(kind="conda", installer="mamba"),
        "platform": linux(),
    }


def test_a_companion_of_another_channel_is_told(judge: Judge) -> None:
    (finding,) = judge(**stack(pytorch="pytorch", torchvision="conda-forge")).findings
    assert (finding.name, finding.severity) == ("conda-channel-mix", "warning")
    assert "torchvision 0.20.1 from conda-forge" in finding.summary
    (line,) = finding.steps[0].commands.bash
    assert line == "mamba install -y -p /env pytorch::torchvision=0.20.1"


def test_addresses_of_channels_are_read(judge: Judge) -> None:
    forge = "https://conda.anaconda.org/conda-forge/linux-64"
    main = "https://repo.anaconda.com/pkgs/main/linux-64"
    (finding,) = judge(**stack(pytorch=forge, mkl=main)).findings
    assert "mkl 2023.1.0 from defaults" in finding.summary


def test_an_import_that_fails_makes_it_an_error(judge: Judge) -> None:
    failed = raised("ImportError", "undefined symbol")
    facts = stack(pytorch="conda-forge", mkl="defaults")
    assert judge(**facts, trial=failed).findings[0].severity == "error"


def test_the_stack_of_the_official_instructions_is_in_order(judge: Judge) -> None:
    facts = stack(pytorch="pytorch", torchvision="pytorch", mkl="defaults", cuda_cudart="nvidia")
    assert judge(**facts).status == "clear"


def test_conda_forge_everywhere_is_in_order(judge: Judge) -> None:
    forge = "conda-forge"
    facts = stack(pytorch=forge, torchvision=forge, mkl=forge, cuda_cudart=forge)
    assert judge(**facts).status == "clear"


def test_what_lies_below_a_torch_that_imports_is_in_order(judge: Judge) -> None:
    facts = stack(pytorch="conda-forge", mkl="defaults")
    assert judge(**facts, trial=imported()).status == "clear"


def test_a_torch_of_pip_has_no_channel(judge: Judge) -> None:
    assert judge(**stack(pytorch="pypi", torchvision="conda-forge")).status == "clear"


def test_what_conda_has_must_be_known(judge: Judge) -> None:
    assert judge(platform=linux()).status == "unknown"


def test_taking_the_companion_from_the_same_channel_cures(cure: Planner) -> None:
    assert cure(**stack(pytorch="pytorch", torchvision="conda-forge")).verdict == "healthy"
