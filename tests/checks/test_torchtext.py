import pytest

from tests.checks.make import build, dist, interpreter, linux, symptom
from tests.conftest import Judge, Planner

BESIDE = {
    "platform": linux(),
    "interpreter": interpreter("3.11.9"),
    "torch": build("2.4.0+cpu"),
    "distributions": (dist("torch", "2.4.0+cpu"), dist("torchtext", "0.18.0")),
}


def test_torchtext_beside_a_newer_torch_is_a_warning(judge: Judge) -> None:
    (finding,) = judge(**BESIDE).findings
    assert (finding.name, finding.severity) == ("torchtext-abandoned", "warning")
    assert "torchtext 0.18.0" in finding.summary
    gone, back = finding.steps
    assert gone.commands.bash == ("/env/bin/python -m pip uninstall -y torchtext",)
    assert "torch==2.3.1+cpu" in back.commands.bash[0]


def test_a_message_that_names_its_library_makes_it_an_error(judge: Judge) -> None:
    said = symptom(
        "undefined-symbol", family="torch", file="/x/site-packages/torchtext/lib/libtorchtext.so"
    )
    assert judge(**BESIDE, symptoms=(said,)).findings[0].severity == "error"


def test_a_torch_newer_than_any_table_is_beyond_it_too(judge: Judge) -> None:
    assert judge(**BESIDE | {"torch": build("9.0.0+cpu")}).status == "found"


def test_its_last_torch_is_in_order(judge: Judge) -> None:
    assert judge(**BESIDE | {"torch": build("2.3.1+cpu")}).status == "clear"


def test_without_torchtext_nothing_is_told(judge: Judge) -> None:
    assert judge(**BESIDE | {"distributions": ()}).status == "clear"


@pytest.mark.parametrize("without", ["distributions", "torch"])
def test_a_fact_that_is_not_there_is_unknown(judge: Judge, without: str) -> None:
    assert judge(**{k: v for k, v in BESIDE.items() if k != without}).status == "unknown"


def test_a_version_that_is_none_is_unknown(judge: Judge) -> None:
    assert judge(**BESIDE | {"torch": build("mine")}).status == "unknown"


def test_uninstalling_cures(cure: Planner) -> None:
    plan = cure(**BESIDE)
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "uninstall-torchtext")
