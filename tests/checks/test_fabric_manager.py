from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Facts

SAID = make.symptom("cuda-system-not-ready", code="802")
HERE = {"platform": make.linux(), "container": None}


def test_a_stopped_fabric_manager_is_found(judge: Judge) -> None:
    (found,) = judge(**HERE, driver=make.driver(fabric="stopped"), symptoms=(SAID,)).findings
    assert (found.name, found.severity) == ("fabric-manager-not-running", "error")
    assert found.confidence == "certain"
    assert found.steps[0].commands.bash == (
        "sudo apt-get install -y nvidia-fabricmanager-580=580.95.05*",
        "sudo systemctl enable --now nvidia-fabricmanager",
    )


def test_error_802_alone_is_likely_the_fabric(judge: Judge) -> None:
    (found,) = judge(**HERE, driver=make.driver(), symptoms=(SAID,)).findings
    assert found.confidence == "likely"


def test_another_release_of_it_is_named(judge: Judge) -> None:
    (found,) = judge(**HERE, driver=make.driver(fabric="running"), symptoms=(SAID,)).findings
    assert "does not serve driver 580.95.05" in found.summary


def test_a_running_one_and_none_are_quiet(judge: Judge) -> None:
    assert judge(driver=make.driver(fabric="running"), symptoms=()).status == "clear"
    assert judge(driver=make.driver(), symptoms=()).status == "clear"
    works = make.runtime(make.device(make.a100()))
    known = {"driver": make.driver(fabric="stopped"), "symptoms": ()}
    assert judge(**known, runtime=works).status == "clear"


def test_a_container_is_sent_to_the_host(judge: Judge) -> None:
    known = HERE | {"container": make.DOCKER, "symptoms": (SAID,)}
    (found,) = judge(**known, driver=make.driver()).findings
    assert "on the host" in found.steps[0].title
    assert not found.steps[0].commands


def test_starting_it_cures(cure: Planner) -> None:
    plan = cure(**HERE, driver=make.driver(fabric="stopped"), symptoms=(SAID,))
    assert (plan.verdict, names(plan.remaining)) == ("healthy", [])


def test_starting_it_leaves_the_driver_that_is_there_by_then(judge: Judge) -> None:
    (found,) = judge(**HERE, driver=None, symptoms=(SAID,)).findings
    (start,) = found.steps
    assert start.effect(Facts(driver=make.driver())).driver == make.driver(fabric="running")
    assert start.effect(Facts(driver=None)).driver is None
