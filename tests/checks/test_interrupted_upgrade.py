import pytest

from tests.checks.make import SITE, build, dist, imported, interpreter, linux, raised
from tests.conftest import Judge, Planner
from torchdoctor.facts import Leftover

LEFT = {
    "platform": linux(),
    "interpreter": interpreter(),
    "leftovers": (Leftover("~orch", SITE), Leftover("~orch-2.1.0.dist-info", SITE)),
    "torch": build("2.13.0+cpu"),
    "distributions": (dist("torch", "2.13.0+cpu"),),
}
RAISED = raised("ImportError", "cannot import name '_C'")


def test_leftovers_beside_a_torch_that_works_are_a_warning(judge: Judge) -> None:
    (finding,) = judge(**LEFT, trial=imported()).findings
    assert (finding.name, finding.severity) == ("interrupted-upgrade", "warning")
    assert "~orch, ~orch-2.1.0.dist-info" in finding.summary
    (line,) = [c for s in finding.steps for c in s.commands.bash if "dist-info" not in c]
    assert line == f"rm -rf '{SITE}/~orch'"
    assert finding.steps[0].deletes


def test_a_torch_that_fails_is_reinstalled_after_them(judge: Judge) -> None:
    (finding,) = judge(**LEFT, trial=RAISED).findings
    assert finding.severity == "error"
    *removal, install = finding.steps[0].commands.bash
    assert all(line.startswith("rm -rf ") for line in removal)
    assert "install --force-reinstall --no-deps torch==2.13.0+cpu" in install


def test_without_torch_the_leftovers_go_and_torch_is_for_another_check(judge: Judge) -> None:
    (finding,) = judge(**LEFT | {"torch": None, "distributions": ()}).findings
    assert finding.severity == "error"
    assert [s.name for s in finding.steps] == ["remove-leftovers"]


@pytest.mark.parametrize(
    "name",
    [
        "~orch",
        "~-rch",
        "~~rch-2.1.0.dist-info",
        "~orchvision",
        "~affe2",
        "~vidia_cublas_cu12-12.1.dist-info",
        "~riton",
    ],
)
def test_every_way_of_pip_to_rename_is_known(judge: Judge, name: str) -> None:
    assert judge(**LEFT | {"leftovers": (Leftover(name, SITE),)}).status == "found"


@pytest.mark.parametrize("name", ["~umpy", "~orchmetrics", "torch", "~"])
def test_what_torch_does_not_need_is_not_told(judge: Judge, name: str) -> None:
    assert judge(**LEFT | {"leftovers": (Leftover(name, SITE),)}).status == "clear"


def test_nobody_looked_for_leftovers_is_unknown(judge: Judge) -> None:
    assert judge(torch=build()).status == "unknown"


@pytest.mark.parametrize("trial", [imported(), RAISED])
def test_the_step_cures(cure: Planner, trial: object) -> None:
    assert cure(**LEFT, trial=trial).verdict == "healthy"


def test_windows_gets_its_own_commands(judge: Judge) -> None:
    site = r"C:\env\Lib\site-packages"
    (finding,) = judge(**LEFT | {"leftovers": (Leftover("~orch", site),)}).findings
    assert finding.steps[0].commands.cmd == (rf'rmdir /s /q "{site}\~orch"',)
