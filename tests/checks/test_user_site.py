from tests.checks.make import SITE, build, dist, imported, interpreter, linux, raised, symptom
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda, CondaPackage, Facts, Module, Unknown

USER = "/home/u/.local/lib/python3.12/site-packages"
HIDING = {
    "platform": linux(),
    "interpreter": interpreter(kind="conda", installer="conda", user_site=USER),
    "variables": {},
    "modules": {"torch": Module("torch", f"{USER}/torch/__init__.py", USER)},
    "distributions": (
        dist("torch", "2.9.1", folder=USER, user_site=True),
        dist("torch", "2.13.0+cpu"),
    ),
    "torch": build("2.9.1", origin=f"{USER}/torch"),
}


def test_a_torch_of_the_user_site_over_the_environments_is_told(judge: Judge) -> None:
    (finding,) = judge(**HIDING, trial=imported()).findings
    assert (finding.name, finding.severity) == ("user-site-shadow", "warning")
    assert "torch 2.9.1 hides 2.13.0+cpu" in finding.summary
    switch, gone = finding.steps
    assert switch.commands.bash == ("export PYTHONNOUSERSITE=1",)
    assert gone.commands.bash == ("/env/bin/python -m pip uninstall -y torch",)


def test_a_companion_that_fails_makes_it_an_error(judge: Judge) -> None:
    failed = {"torchvision": raised("RuntimeError", "nms", module="torchvision")}
    (finding,) = judge(**HIDING, trial=imported(), companion_trials=failed).findings
    assert finding.severity == "error"


def test_numpy_counts_too(judge: Judge) -> None:
    two = (dist("numpy", "1.26.4", folder=USER, user_site=True), dist("numpy", "2.2.0"))
    modules = {"numpy": Module("numpy", f"{USER}/numpy/__init__.py", USER)}
    (finding,) = judge(**HIDING | {"distributions": two, "modules": modules}).findings
    assert "numpy 1.26.4 hides 2.2.0" in finding.summary


def test_the_only_copy_may_be_in_the_user_site(judge: Judge) -> None:
    only = (dist("torch", "2.9.1", folder=USER, user_site=True),)
    assert judge(**HIDING | {"distributions": only}).status == "clear"


def test_a_system_python_uses_its_user_site_by_right(judge: Judge) -> None:
    system = interpreter(kind="system", user_site=USER)
    assert judge(**HIDING | {"interpreter": system}).status == "clear"


def test_a_copy_that_is_not_imported_hides_nothing(judge: Judge) -> None:
    own = {"torch": Module("torch", f"{SITE}/torch/__init__.py", SITE)}
    assert judge(**HIDING | {"modules": own}).status == "clear"


def test_where_imports_go_must_be_known(judge: Judge) -> None:
    without = {k: v for k, v in HIDING.items() if k != "modules"}
    assert judge(**without).status == "unknown"


def test_switching_the_user_site_off_cures(cure: Planner) -> None:
    plan = cure(**HIDING, trial=imported())
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "set-pythonnousersite")


def test_uninstalling_the_copy_cures_too(judge: Judge) -> None:
    (finding,) = judge(**HIDING).findings
    after = finding.steps[1].effect(Facts(**HIDING))  # type: ignore[arg-type]
    known = {name: getattr(after, name) for name in HIDING}
    assert judge(**known).status == "clear"
    assert known["torch"].version == "2.13.0+cpu"


def told(**changes: object) -> dict[str, object]:
    """Return what a report tells that shows where torch is, and no list of packages."""
    known: dict[str, object] = {
        "interpreter": interpreter(kind="conda", installer="conda", user_site=USER),
        "modules": {"torch": Module("torch", f"{USER}/torch/__init__.py", USER)},
        "symptoms": (symptom("nms-operator-missing", "log"),),
    }
    return known | changes


def test_a_torch_of_the_user_site_that_does_not_fit_is_enough(judge: Judge, cure: Planner) -> None:
    (finding,) = judge(**told()).findings
    assert (finding.name, finding.severity) == ("user-site-shadow", "error")
    assert finding.confidence == "likely"
    assert cure(**told(), variables={}).verdict == "healthy"


def test_without_a_misfit_or_an_environment_it_stays_open(judge: Judge) -> None:
    assert judge(**told(symptoms=())).status == "unknown"
    assert judge(**told(interpreter=interpreter(kind="system", user_site=USER))).status == "unknown"
    assert judge(**told(modules={"torch": Module("torch", None, SITE)})).status == "unknown"


def test_a_torch_of_another_version_than_condas_is_from_the_user_site(
    judge: Judge, cure: Planner
) -> None:
    record = CondaPackage("pytorch", "1.6.0", "py3.7_cuda10.1", "pytorch")
    here = told(modules=Unknown("not shown"), conda=Conda((record,)), torch=build("1.9.0+cu102"))
    (finding,) = judge(**here).findings
    assert "hides conda's own 1.6.0" in finding.summary
    assert cure(**here).verdict == "healthy"
    assert judge(**here | {"torch": build("1.6.0")}).status == "unknown"
