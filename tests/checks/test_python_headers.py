from tests.checks.make import dist, interpreter, linux, system, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import Unknown

HERE = {
    "platform": windows(),
    "interpreter": interpreter(),
    "distributions": (dist("triton-windows", "3.5.0"),),
}


def test_triton_on_a_python_without_headers(judge: Judge, cure: Planner) -> None:
    (finding,) = judge(**HERE, windows=system(headers=False)).findings
    assert (finding.name, finding.severity) == ("python-dev-files-missing", "warning")
    assert "triton-windows 3.5.0" in finding.summary
    assert cure(**HERE, windows=system(headers=False)).verdict == "healthy"


def test_near_misses(judge: Judge) -> None:
    assert judge(**HERE, windows=system(headers=True)).status == "clear"
    assert judge(**HERE | {"distributions": ()}, windows=system(headers=False)).status == "clear"
    assert judge(**HERE | {"platform": linux()}, windows=system(headers=False)).status == "clear"
    assert judge(**HERE, windows=Unknown()).status == "unknown"
