"""A step cures what it is for; what it only puts out of sight stands, and is said to stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from tests.checks import make
from torchdoctor import effects, plan, standing, steps
from torchdoctor.facts import Facts, Record, Symptom
from torchdoctor.model import Effect, Finding, Layer, Plan, Step
from torchdoctor.registry import Check, all_checks
from torchdoctor.run import run

CHECKS = all_checks()


def planned(**known: object) -> Plan:
    facts = Facts(**known)  # type: ignore[arg-type]
    return plan.make(CHECKS, facts, run(CHECKS, facts))


def names(made: Plan) -> list[str]:
    return [planned.step.name for planned in made.steps]


def a_step(name: str, effect: object = effects.untried) -> Step:
    return Step(name, name, "", Layer.PACKAGES, 1, effect)  # type: ignore[arg-type]


def a_finding(
    name: str, *own: Step, family: str = "gpu", because_of: tuple[str, ...] = ()
) -> Finding:
    return Finding(name, "error", name, (), own, family=family, because_of=because_of)


def stands(finding: Finding, step: Step, *others: Finding, **known: object) -> bool:
    """Tell whether *finding*, seen as long as what was tried is known, stands after *step*."""
    gone = [finding, *others]
    return finding in standing.standing(gone, step, Facts(**known), finds=lambda _: True)  # type: ignore[arg-type]


def test_a_variable_that_is_unset_makes_no_cached_wheel_whole() -> None:
    known = {"torch": make.build(), "gpus": (make.a100(0), make.a100(1))}
    here = {**known, "variables": {"CUDA_VISIBLE_DEVICES": "0,0"}}
    torn = make.symptom("archive-damaged", "log", file="torch/lib/cublas.dll", kind="checksum")
    assert names(planned(**here, symptoms=())) == ["unset-cuda-visible-devices"]
    assert names(planned(**known, symptoms=(torn,))) == ["purge-pip-cache"]
    both = planned(**here, symptoms=(torn,))
    assert names(both) == ["purge-pip-cache", "unset-cuda-visible-devices"]
    assert [planned.clears for planned in both.steps] == [
        ("pip-cache-corrupt",),
        ("cuda-visible-devices-bad",),
    ]


def test_a_step_of_another_finding_leaves_it_standing() -> None:
    own, other = a_step("own"), a_step("other")
    assert stands(a_finding("fault", own), other)
    assert not stands(a_finding("fault", own), own)


def test_a_finding_without_a_step_stands_until_the_facts_say_else() -> None:
    lost = a_finding("fault")
    assert stands(lost, a_step("other"))
    assert standing.standing([lost], a_step("other"), Facts(), finds=lambda _: False) == ()


def test_what_a_cured_finding_explains_is_cured_with_it() -> None:
    step = a_step("own")
    cause, then = a_finding("cause", step), a_finding("then", because_of=("cause",))
    last = a_finding("last", because_of=("then",))
    assert not stands(last, step, cause, then)
    assert stands(last, step, cause)


def installs(name: str, **versions: str) -> Step:
    return a_step(name, effects.packages(versions))


@pytest.mark.parametrize(
    ("family", "wanted", "done", "cured"),
    [
        ("files", installs("again", torch="2.9.1"), installs("new", torch="2.10.0"), True),
        ("gpu", installs("older", torch="2.9.1"), installs("new", torch="2.10.0"), False),
        ("gpu", installs("same", torch="2.9.1"), installs("all", torch="2.9.1", numpy="2"), True),
        ("files", installs("both", torch="2.9.1", numpy="2"), installs("one", numpy="2"), False),
        ("files", a_step("set", effects.with_variable("A", "1")), installs("n", numpy="2"), False),
    ],
)
def test_a_step_that_does_all_that_another_does_takes_its_place(
    *, family: str, wanted: Step, done: Step, cured: bool
) -> None:
    finding = a_finding("fault", wanted, family=family)
    assert stands(finding, done, distributions=(), variables={}) is not cured


def test_a_new_environment_takes_the_place_of_packages_but_not_of_variables_or_drivers() -> None:
    fresh = a_step("new", effects.change(interpreter=make.interpreter("3.13.1"), distributions=()))
    package = a_finding("torn", installs("again", torch="2.9.1"), family="files")
    assert not stands(package, fresh, interpreter=make.interpreter())
    variable = a_finding("set", a_step("unset", effects.without_variable("A")), family="files")
    assert stands(variable, fresh, interpreter=make.interpreter(), variables={"A": "1"})
    driver = a_finding("old", a_step("up", effects.driver_becomes("580.1", "13.0")), family="files")
    assert stands(driver, fresh, interpreter=make.interpreter(), driver=make.driver("470.1"))


def test_no_two_steps_of_a_plan_bring_different_torches() -> None:
    known = {
        "platform": make.windows(),
        "interpreter": make.interpreter("3.12.4", machine="win-amd64"),
        "torch": make.build("2.4.0+cpu"),
        "distributions": (make.dist("torch", "2.4.0+cpu"),),
    }
    no_wheel = make.symptom(
        "no-wheel-found", "log", requirement="torch==2.1.2", versions="2.2.0, 2.4.1"
    )
    named = make.dll_error("126", "fbgemm.dll")
    made = planned(**known, symptoms=(no_wheel, named))
    assert sum(name.startswith("install-torch-2") for name in names(made)) <= 1


def test_what_an_import_showed_holds_until_another_torch_comes() -> None:
    known = {
        "platform": make.windows(),
        "interpreter": make.interpreter(machine="win-amd64", executable=r"C:\env\python.exe"),
        "torch": make.build("2.9.1+cpu"),
        "distributions": (make.dist("torch", "2.9.1+cpu"), make.dist("torchtext", "0.18.0")),
        "trial": make.imported(),
        "windows": make.system(make.dll_load()),
        "symptoms": (),
    }
    facts = Facts(**known)  # type: ignore[arg-type]
    found = {f.name for f in plan.findings_of(run(CHECKS, facts)) if f.severity != "note"}
    made = planned(**known)
    assert "uninstall-torchtext" in names(made)
    assert {f.name for f in made.remaining if f.severity != "note"} <= found
    assert ("install-vc-redist" in names(made)) == ("vcredist-too-old" in found)


SAID = make.symptom("said", "log")
"""What an import said: unknown again after most steps."""


def sets(name: str, *, tries: bool) -> Step:
    """Return a step that makes the fault *name* good; with *tries* all imports are open again."""
    good = effects.with_variable(name, "good")

    def only(facts: Facts) -> Facts:
        return replace(good(facts), symptoms=facts.symptoms)

    return a_step(f"fix-{name}", good if tries else only)


def sets_bad(name: str) -> Effect:
    return effects.with_variable(name, "bad")


def bad(name: str, own: Step) -> Check:
    def look(variables: Mapping[str, str]) -> Iterator[Finding]:
        if variables[name] == "bad":
            yield a_finding(name, own)

    return Check(name, "test", "", ("variables",), frozenset(), (), (name,), look)


def told(*own: Step, once: str = "", always: bool = False) -> Check:
    """Return a check of what was said: it tells once *once* is good, or has *own* steps then."""

    def look(variables: Mapping[str, str], symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
        good = variables[once] == "good"
        if symptoms and (good or always):
            yield a_finding("told", *(own if good else ()))

    reads = ("variables", "symptoms")
    return Check("told", "test", "", reads, frozenset(), (), ("told",), look)


def made_by(*checks: Check, **variables: str) -> Plan:
    facts = Facts(variables=variables, symptoms=(SAID,), interpreter=make.interpreter())
    by_name = {check.name: check for check in checks}
    return plan.make(by_name, facts, run(by_name, facts))


def test_what_comes_up_on_the_way_and_goes_out_of_sight_again_is_not_said_to_be_left() -> None:
    quiet, loud = bad("a", sets("a", tries=False)), bad("b", sets("b", tries=True))
    made = made_by(quiet, loud, told(once="a"), a="bad", b="bad")
    assert names(made) == ["fix-a", "fix-b"]
    assert made.remaining == ()
    (left,) = made_by(quiet, loud, told(once="a", always=True), a="bad", b="bad").remaining
    assert left.name == "told"  # it was there from the start


def test_what_is_offered_for_a_finding_by_now_cures_it_although_it_is_out_of_sight() -> None:
    step, other = sets("b", tries=True), sets("c", tries=True)
    first, then = bad("a", sets("a", tries=True)), bad("b", step)
    made = made_by(first, then, told(step, once="a", always=True), a="bad", b="bad")
    assert (names(made), made.remaining) == (["fix-a", "fix-b"], ())
    (left,) = made_by(
        first, then, told(other, once="a", always=True), a="bad", b="bad", c="good"
    ).remaining
    assert left.name == "told"


def test_what_waits_for_a_fault_that_stands_is_not_told_before_it() -> None:
    cause, late = told(once="b", always=True), bad("a", sets("a", tries=True))
    waiting = replace(late, after=("told",))
    other = bad("b", sets("b", tries=True))
    made = made_by(cause, waiting, other, a="bad", b="bad")
    assert names(made) == ["fix-b"]
    assert [f.name for f in made.remaining] == ["told"]
    assert names(made_by(cause, late, other, a="bad", b="bad")) == ["fix-a", "fix-b"]


def test_what_an_import_showed_says_nothing_of_a_new_environment() -> None:
    def look(variables: Mapping[str, str], symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
        if variables["x"] == "bad" and not symptoms:  # what was said at the start belied it
            yield a_finding("x")

    belied = Check("x", "test", "", ("variables", "symptoms"), frozenset(), (), ("x",), look)
    breaks = a_step("fix-b", effects.then(sets("b", tries=True).effect, sets_bad("x")))
    same = bad("a", sets("a", tries=True))
    assert names(made_by(belied, same, bad("b", breaks), a="bad", b="bad", x="good")) == [
        "fix-a",
        "fix-b",
    ]
    new = effects.change(interpreter=make.interpreter("3.13.1"))
    fresh = bad("a", a_step("fix-a", effects.then(sets("a", tries=True).effect, new)))
    made = made_by(belied, fresh, bad("b", breaks), a="bad", b="bad", x="good")
    assert names(made) == ["fix-a"]


def test_a_package_put_into_a_new_environment_does_not_undo_it() -> None:
    assert standing.undoes({"numpy": "2.1.0"}, {"numpy": ""})
    fresh = {"interpreter": "", "numpy": "", "torch": "2.9.1"}
    assert not standing.undoes({"numpy": "2.1.0"}, fresh)
    assert standing.undoes({"torch": "2.8.0"}, fresh)
    assert not standing.undoes({"torch": "2.9.1", "filelock": "3"}, fresh)


def test_what_is_put_in_place_is_told_by_the_facts() -> None:
    facts = Facts(
        interpreter=make.interpreter(),
        distributions=(make.dist("torch", "2.9.1"), make.dist("numpy", "2.1.0")),
        torch=make.build("2.9.1"),
        variables={"A": "1"},
    )
    again = steps.reinstall(facts, ["torch"], why="")
    assert standing.touched(again, facts) == {"torch": "2.9.1"}
    gone = steps.uninstall(facts, "numpy", why="")
    assert standing.touched(gone, facts) == {"numpy": ""}
    assert standing.touched(steps.unset_variable("A", why=""), facts) == {"$A": ""}
    assert standing.touched(steps.unset_variable("B", why=""), facts) == {}
    assert standing.touched(again, replace(facts, distributions=())) == {"torch": "2.9.1"}


def test_a_torch_that_was_just_put_in_is_not_put_in_again() -> None:
    """Its files are those that were published: nothing is gained by the same ones."""
    check = {"torch-imports": CHECKS["torch-imports"]}
    here = Facts(
        platform=make.linux(),
        interpreter=make.interpreter(),
        distributions=(make.dist("torch", "2.13.0+cpu"),),
        torch=make.build("2.13.0+cpu"),
        records={"torch": Record("torch", 100)},
        trial=make.raised("ImportError", "?"),
    )
    (outcome,) = run(check, here)
    assert [step.name for f in outcome.findings for step in f.steps] == ["reinstall-torch"]
    after = effects.packages({"torch": "2.13.0+cu126"})(here)
    (outcome,) = run(check, standing.as_tried(here, after))
    assert [f.steps for f in outcome.findings] == [()]
