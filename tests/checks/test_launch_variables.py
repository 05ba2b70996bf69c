from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks.make import dist
from tests.conftest import Judge, Planner
from torchdoctor.facts import Build, Unknown
from torchdoctor.model import Finding
from torchdoctor.tables import load

NEW, OLD = Build("2.6.0+cu124"), Build("1.13.1+cu117")
WHOLE = (dist("torch", "2.6.0"),)


def found(judge: Judge, torch: object = NEW, **variables: str) -> list[Finding]:
    return list(judge(variables=variables, torch=torch, distributions=WHOLE).findings)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_SOCKET_IFNAM", "NCCL_SOCKET_IFNAME"),
        ("NCCL_SOCKET_IF_NAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_P2P_DISABLED", "NCCL_P2P_DISABLE"),
        ("NCCL_IB_GID_IDX", "NCCL_IB_GID_INDEX"),
        ("TORCH_NCCL_BLOCKING_WAITS", "TORCH_NCCL_BLOCKING_WAIT"),
    ],
)
def test_a_misspelt_name_is_told_with_the_one_that_was_meant(
    judge: Judge, name: str, meant: str
) -> None:
    (finding,) = found(judge, **{name: "1"})
    assert (finding.name, finding.severity) == ("nccl-variable-unknown", "warning")
    assert f"{meant} is" in finding.summary
    assert finding.steps[0].commands.bash == (f"unset {name}",)


@pytest.mark.parametrize(
    "name",
    [
        *("NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_VERSION", "NCCL_HOME"),
        *("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "NCCL_FUTURE_FEATURE", "NCCL_P2P_DISABLE_LATER"),
        *("NV_LIBNCCL_PACKAGE", "GLOO_SOCKET_IFNAME", "OFI_NCCL_PROTOCOL"),
    ],
)
def test_known_names_and_those_like_no_known_one_are_let_be(judge: Judge, name: str) -> None:
    assert found(judge, **{name: "x"}) == []


def test_no_known_name_is_taken_for_a_misspelt_one(judge: Judge) -> None:
    known = [f"NCCL_{name}" for name in load("variables")["nccl"]["names"].split()]
    known += [f"TORCH_NCCL_{name}" for name in load("variables")["torch"]["names"].split()]
    assert [f for f in found(judge, **dict.fromkeys(known, "x")) if f.severity != "note"] == []
    assert len(known) > 200


def test_a_name_of_torch_s_that_was_renamed_is_told_where_torch_is_new_enough(
    judge: Judge,
) -> None:
    (finding,) = found(judge, NCCL_BLOCKING_WAIT="1")
    assert finding.name == "nccl-variable-renamed"
    assert "TORCH_NCCL_BLOCKING_WAIT" in finding.summary
    assert found(judge, OLD, NCCL_BLOCKING_WAIT="1") == []
    assert found(judge, Unknown(), NCCL_BLOCKING_WAIT="1") == []


def test_what_was_set_to_find_a_fault_is_a_note(judge: Judge) -> None:
    (finding,) = found(judge, NCCL_P2P_DISABLE="1")
    assert (finding.name, finding.severity) == ("nccl-variable-left-over", "note")
    assert found(judge, NCCL_P2P_DISABLE="0") == []


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 is not below WORLD_SIZE=2"),
        ({"RANK": "0"}, "WORLD_SIZE is not"),
        ({"WORLD_SIZE": "8", "LOCAL_RANK": "0"}, "RANK is not"),
        ({"RANK": "zero", "WORLD_SIZE": "2"}, "RANK=zero is no number"),
        ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "3"}, "LOCAL_RANK=3 is above RANK=1"),
    ],
)
def test_numbers_of_a_job_that_cannot_be_are_told(
    judge: Judge, variables: dict[str, str], why: str
) -> None:
    (finding,) = found(judge, **variables)
    assert finding.name == "launch-variables-inconsistent"
    assert why in finding.summary


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"},
        {"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1"},
        {"LOCAL_RANK": "0"},
    ],
)
def test_numbers_of_a_job_that_can_be_are_let_be(judge: Judge, variables: dict[str, str]) -> None:
    assert found(judge, **variables) == []


def test_variables_of_a_text_are_not_all_there_are(judge: Judge) -> None:
    given = {"RANK": "0", "MASTER_ADDR": "192.0.2.1"}
    row = replace(WHOLE[0], metadata="")
    for listed in (Unknown("a text"), (), (row,)):
        assert judge(variables=given, torch=NEW, distributions=listed).findings == ()
    wrong = judge(variables={"RANK": "2", "WORLD_SIZE": "2"}, torch=NEW, distributions=())
    assert wrong.status == "found"


def test_the_steps_cure_and_take_all_of_a_foreign_job_away(cure: Planner) -> None:
    plan = cure(variables={"RANK": "2", "WORLD_SIZE": "2", "NCCL_SOCKET_IFNAM": "eth0"}, torch=NEW)
    assert plan.verdict == "healthy"
    assert {line for step in plan.steps for line in step.step.commands.bash} == {
        "unset RANK WORLD_SIZE",
        "unset NCCL_SOCKET_IFNAM",
    }


def test_without_variables_nothing_can_be_told(judge: Judge) -> None:
    assert judge(variables=Unknown("not told"), torch=NEW).status == "unknown"
