from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner

SAID = make.symptom(
    "module-missing", "build.log", "No module named 'pkg_resources'", module="pkg_resources"
)


def _with(torch: str, setuptools: str) -> dict[str, object]:
    return {
        "torch": make.build(torch),
        "distributions": (make.dist("torch", torch), make.dist("setuptools", setuptools)),
        "interpreter": make.interpreter("3.11.7"),
    }


def test_a_build_that_failed_for_it_is_warned_of(judge: Judge, cure: Planner) -> None:
    known = _with("2.1.2+cu121", "82.0.1") | {"symptoms": (SAID,)}
    (found,) = judge(**known).findings
    assert (found.name, found.severity) == ("setuptools-too-new", "warning")
    assert "setuptools 82.0.1" in found.summary
    assert found.steps[0].commands.bash == ("/env/bin/python -m pip install 'setuptools<82'",)
    assert cure(**known).verdict == "healthy"


def test_where_nothing_was_built_it_is_a_note(judge: Judge) -> None:
    (found,) = judge(**_with("2.1.2+cu121", "82.0.1")).findings
    assert (found.severity, found.steps) == ("note", ())


def test_an_older_setuptools_or_a_newer_torch_is_quiet(judge: Judge) -> None:
    assert judge(**_with("2.1.2+cu121", "81.0.0")).status == "clear"
    assert judge(**_with("2.2.0+cu121", "82.0.1")).status == "clear"


def test_it_cannot_tell_without_the_packages(judge: Judge) -> None:
    assert judge(torch=make.build("2.1.2+cu121")).status == "unknown"
