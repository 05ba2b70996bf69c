from tests.checks.make import imported, interpreter, linux, raised, symptom
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda, CondaPackage

SAID = symptom("undefined-symbol", symbol="iJIT_NotifyEvent", family="mkl")


def facts(mkl: str = "2024.1", torch: str = "2.0.1", channel: str = "pytorch") -> dict[str, object]:
    packages = (
        CondaPackage("mkl", mkl, "", "defaults"),
        CondaPackage("pytorch", torch, "", channel),
    )
    return {
        "platform": linux(),
        "interpreter": interpreter(kind="conda", installer="conda"),
        "conda": Conda(packages, "/env"),
    }


def test_an_mkl_without_the_function_is_an_error(judge: Judge) -> None:
    failed = raised("ImportError", "undefined symbol: iJIT_NotifyEvent")
    (finding,) = judge(**facts(), symptoms=(SAID,), trial=failed).findings
    assert (finding.name, finding.severity) == ("mkl-too-new", "error")
    assert (finding.confidence, "MKL 2024.1" in finding.summary) == ("certain", True)
    assert finding.steps[0].commands.bash == ("conda install -y -p /env 'mkl<2024.1'",)


def test_without_a_message_it_is_likely(judge: Judge) -> None:
    assert judge(**facts()).findings[0].confidence == "likely"


def test_a_torch_that_works_is_in_order(judge: Judge) -> None:
    assert judge(**facts(), trial=imported()).status == "clear"


def test_an_older_mkl_is_in_order(judge: Judge) -> None:
    assert judge(**facts("2024.0")).status == "clear"


def test_a_torch_of_pip_has_its_own(judge: Judge) -> None:
    assert judge(**facts(channel="pypi")).status == "clear"
    assert judge(conda=None).status == "clear"


def test_a_torch_that_nobody_read_is_unknown_until_a_message_tells(judge: Judge) -> None:
    assert judge(**facts(torch="2.5.1")).status == "unknown"
    assert judge(**facts(torch="2.5.1"), symptoms=(SAID,)).status == "found"


def test_an_older_mkl_cures(cure: Planner) -> None:
    assert cure(**facts(), symptoms=(SAID,)).verdict == "healthy"
