from tests.checks.make import build, dist, interpreter, linux, mac
from tests.conftest import Judge, Planner
from torchdoctor.facts import Unknown
from torchdoctor.model import Outcome

NONE = {"torch": None, "platform": linux(), "distributions": ()}


def bash(outcome: Outcome) -> tuple[str, ...]:
    return outcome.findings[0].steps[0].commands.bash


def test_no_torch_is_an_error_with_a_whole_command(judge: Judge) -> None:
    outcome = judge(**NONE, interpreter=interpreter(), gpus=(), driver=None)
    (finding,) = outcome.findings
    assert (finding.name, finding.severity) == ("torch-not-installed", "error")
    assert "/env/bin/python" in finding.summary
    (line,) = bash(outcome)
    assert line.startswith("/env/bin/python -m pip install torch==")
    assert line.endswith("+cpu --index-url https://download.pytorch.org/whl/cpu")


def test_the_python_of_the_system_gets_a_venv_instead(judge: Judge) -> None:
    outcome = judge(**NONE, interpreter=interpreter(kind="system", externally_managed=True))
    first, second = bash(outcome)
    assert first == "uv venv --python 3.12 .venv-torch"
    assert "uv pip install --python .venv-torch/bin/python torch==" in second


def test_registered_but_gone_is_for_another_check(judge: Judge) -> None:
    gone = (dist("torch", "2.13.0"),)
    assert judge(torch=None, distributions=gone, interpreter=interpreter()).status == "clear"


def test_nobody_looked_is_unknown(judge: Judge) -> None:
    assert judge(torch=Unknown("no folder was read")).status == "unknown"


def test_installing_cures(cure: Planner) -> None:
    plan = cure(**NONE, interpreter=interpreter())
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)


def test_a_new_environment_cures_the_system_python(cure: Planner) -> None:
    plan = cure(**NONE, interpreter=interpreter(kind="system", externally_managed=True))
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "new-environment-python-3-12")


def test_a_python_without_wheels_gets_one_that_has_them(judge: Judge) -> None:
    outcome = judge(**NONE | {"platform": mac()}, interpreter=interpreter("3.6.9"))
    assert bash(outcome)[0] == "uv venv --python 3.12 .venv-torch"


def test_a_torch_that_is_there_is_in_order(judge: Judge) -> None:
    assert judge(torch=build()).status == "clear"


def test_where_nothing_is_known_of_gpus_the_default_build_is_advised(judge: Judge) -> None:
    (line,) = bash(judge(**NONE, interpreter=interpreter()))
    assert "/whl/cu" in line
