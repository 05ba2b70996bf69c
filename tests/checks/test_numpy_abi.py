import pytest

from tests.checks.make import build, dist, interpreter, linux, runtime, symptom, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import Module

OLD = {
    "platform": linux(),
    "interpreter": interpreter("3.11.9"),
    "torch": build("2.2.2+cpu"),
    "distributions": (dist("torch", "2.2.2+cpu"), dist("numpy", "2.0.0")),
}


def test_an_old_torch_with_numpy_2_is_a_warning(judge: Judge) -> None:
    (finding,) = judge(**OLD).findings
    assert (finding.name, finding.severity) == ("numpy2-abi", "warning")
    assert "torch 2.2.2+cpu was built for NumPy 1 and NumPy 2.0.0" in finding.summary
    older, newer = finding.steps
    assert older.commands.bash == ("/env/bin/python -m pip install 'numpy<2'",)
    assert "torch==2.3.0+cpu" in newer.commands.bash[0]


def test_what_torch_said_of_numpy_is_evidence(judge: Judge) -> None:
    failed = runtime(numpy="RuntimeError: Numpy is not available")
    (finding,) = judge(**OLD, runtime=failed).findings
    assert any("not available" in e.value for e in finding.evidence)


def test_a_numpy_of_conda_is_changed_by_conda(judge: Judge) -> None:
    facts = OLD | {
        "interpreter": interpreter("3.11.9", kind="conda", installer="conda"),
        "distributions": (dist("numpy", "2.0.0", installer="conda"),),
    }
    (finding,) = judge(**facts).findings
    assert finding.steps[0].commands.bash == ("conda install -y -p /env 'numpy<2'",)


def test_the_message_alone_tells_the_numpy(judge: Judge) -> None:
    facts = {k: v for k, v in OLD.items() if k != "distributions"}
    said = symptom("numpy-1-abi", numpy="2.0.0")
    assert judge(**facts, symptoms=(said,)).findings[0].name == "numpy2-abi"
    assert judge(**facts).status == "unknown"


def test_windows_needs_a_later_torch(judge: Judge) -> None:
    facts = OLD | {"torch": build("2.4.0+cpu")}
    assert judge(**facts).status == "clear"
    assert judge(**facts | {"platform": windows()}).status == "found"


def test_a_torch_whose_numpy_works_is_in_order(judge: Judge) -> None:
    assert judge(**OLD, runtime=runtime()).status == "clear"


@pytest.mark.parametrize("numpy", ["1.26.4", "0.0"])
def test_numpy_1_is_in_order(judge: Judge, numpy: str) -> None:
    assert judge(**OLD | {"distributions": (dist("numpy", numpy),)}).status == "clear"


def test_no_numpy_is_in_order(judge: Judge) -> None:
    assert judge(**OLD | {"distributions": ()}).status == "clear"


def test_the_numpy_that_is_imported_counts(judge: Judge) -> None:
    user = "/home/u/.local/lib"
    two = (dist("numpy", "1.26.4"), dist("numpy", "2.1.0", folder=user, user_site=True))
    assert judge(**OLD | {"distributions": two}).status == "clear"
    modules = {"numpy": Module("numpy", f"{user}/numpy/__init__.py", user)}
    assert judge(**OLD | {"distributions": two, "modules": modules}).status == "found"


def test_numpy_1_cures(cure: Planner) -> None:
    plan = cure(**OLD)
    assert (plan.verdict, plan.steps[0].step.title) == ("healthy", "Install numpy<2")


def test_the_messages_of_torch_are_enough_where_the_listing_is_not(judge: Judge) -> None:
    warned = symptom("numpy-1-abi", "log", numpy="2.0.0")
    refused = symptom("numpy-not-available", "log")
    (finding,) = judge(symptoms=(warned, refused)).findings
    assert finding.summary.startswith("This torch was built for NumPy 1 and NumPy 2.0.0")
    assert judge(symptoms=(warned,)).status == "unknown"  # another module may have said it
    (finding,) = judge(symptoms=(warned,), torch=build("2.2.2+cpu")).findings
    assert finding.name == "numpy2-abi"


def test_a_torch_that_is_old_on_windows_only_needs_the_system(judge: Judge) -> None:
    warned = symptom("numpy-1-abi", "log", numpy="2.0.0")
    assert judge(symptoms=(warned,), torch=build("2.3.1+cpu")).status == "unknown"
    assert judge(symptoms=(warned,), torch=build("2.4.1+cpu")).status == "clear"
