"""Public bug reports with a confirmed cause: what is said of each stays right."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.corpus_score import CHECKS, Case, Scored, cases, score
from torchdoctor import inputs
from torchdoctor.facts import Expectation
from torchdoctor.reading import machine
from torchdoctor.run import run

CASES = {case.id: case for case in cases()}

LAUNCH = "no check judges launchers, networks and collectives"
USE = "no check judges how DDP is used"

NOT_YET: Mapping[str, str] = {
    "079-nccl-acs-two-5880-ada": LAUNCH,
    "081-p2p-broken-by-driver-545": LAUNCH,
    "082-shm-64m-docker": LAUNCH,
    "084-gloo-ifname-exclusion-syntax": LAUNCH,
    "085-gloo-loopback-between-nodes": LAUNCH,
    "087-port-29500-in-use": LAUNCH,
    "088-windows-no-nccl": LAUNCH,
    "090-local-rank-argument": LAUNCH,
    "091-master-addr-not-this-machine": LAUNCH,
    "093-roce-gid-index": LAUNCH,
    "094-nccl-differs-between-nodes": LAUNCH,
    "095-sampler-and-shuffle": USE,
    "097-module-prefix": USE,
    "098-uneven-steps-hang": USE,
    "100-rank0-prepares-data-others-time-out": USE,
    "122-hard-p2p-hang-then-shm": LAUNCH,
}
"""Cases of which the cause is not found, and why. One that becomes right has to leave the list."""

NOT_IN_ORDER: Mapping[str, str] = {
    "115-hard-cpu-build-and-newer-torchvision": "which CUDA a bare 'CUDA version' is, is not told",
    "121-hard-new-gpu-then-1114": "the step for the GPU comes before that for the DLL",
    "122-hard-p2p-hang-then-shm": LAUNCH,
}
"""Hard cases whose plan does not clear what is expected in the order expected, and why."""


@pytest.fixture(scope="module")
def scored() -> dict[str, Scored]:
    """Return what is said of every case; no check may crash on one."""
    return {name: score(case) for name, case in CASES.items()}


each = pytest.mark.parametrize("name", CASES)


@each
def test_the_cause_is_named_first_or_the_case_is_listed(
    scored: dict[str, Scored], name: str
) -> None:
    one = scored[name]
    said = f"{one.case.expected} {one.case.acceptable}: said {one.above_note}"
    assert one.right == (name not in NOT_YET), said


@each
def test_nothing_is_said_that_no_label_names(scored: dict[str, Scored], name: str) -> None:
    assert scored[name].false == []


@each
def test_the_plan_leaves_no_more_than_was_found(scored: dict[str, Scored], name: str) -> None:
    one = scored[name]
    left = [f.name for f in one.plan.remaining if f.severity != "note"]
    assert len(left) <= len(one.above_note), left


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.order])
def test_the_plan_clears_a_hard_case_in_its_order(scored: dict[str, Scored], name: str) -> None:
    assert scored[name].ordered == (name not in NOT_IN_ORDER)


def test_the_lists_name_cases_that_exist() -> None:
    assert (NOT_YET.keys() | NOT_IN_ORDER.keys()) <= CASES.keys()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.healthy])
def test_a_healthy_machine_is_left_alone(scored: dict[str, Scored], name: str) -> None:
    assert scored[name].above_note == []
    assert scored[name].plan.steps == ()
    assert scored[name].plan.verdict == "healthy"


def families(*names: str) -> list[Case]:
    return [case for case in CASES.values() if case.family in names]


@pytest.mark.parametrize(
    "family", ["cuda-driver-arch", "version-align", "install-mix", "windows-dll"]
)
def test_a_whole_family_is_right(scored: dict[str, Scored], family: str) -> None:
    assert [case.id for case in families(family) if not scored[case.id].right] == []


@each
def test_no_check_crashes_on_half_a_report(name: str) -> None:
    text = CASES[name].file.read_text("utf-8")
    for part in (text[: len(text) // 2], text[len(text) // 2 :]):
        facts = machine.read(inputs.of_text(part), Expectation())
        assert [o.reason for o in run(CHECKS, facts) if o.status == "crashed"] == []
