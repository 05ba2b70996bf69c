"""What is between GPUs, as sysfs shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import Peers, Unknown

PCIE = (make.nvidia("NVIDIA A40", (8, 6)), make.nvidia("NVIDIA A40", (8, 6), 1))
LINKED = tuple(replace(card, name="NVIDIA H100 80GB HBM3 SXM5") for card in PCIE)
REDIRECTED = Peers(2, ("0000:00:01.0", "0000:00:03.0"), "translates")


def test_bridges_that_redirect_are_named_with_the_command_for_each(
    judge: Judge, cure: Planner
) -> None:
    (finding,) = judge(peers=REDIRECTED, gpus=PCIE).findings
    assert (finding.name, finding.severity) == ("p2p-acs-iommu", "warning")
    assert "0000:00:01.0, 0000:00:03.0" in finding.summary
    assert "and the IOMMU translates it" in finding.summary
    plan = cure(peers=REDIRECTED, gpus=PCIE)
    assert plan.verdict == "healthy"
    (step,) = plan.steps
    assert step.step.commands.bash == (
        "sudo setpci -s 0000:00:01.0 ECAP_ACS+0x6.w=0000",
        "sudo setpci -s 0000:00:03.0 ECAP_ACS+0x6.w=0000",
    )


def test_a_virtual_machine_goes_without(judge: Judge, cure: Planner) -> None:
    virtual = replace(REDIRECTED, virtual=True, iommu="")
    (finding,) = judge(peers=virtual, gpus=PCIE).findings
    assert "IOMMU" not in finding.summary
    assert finding.steps[0].commands.bash == ("export NCCL_P2P_DISABLE=1",)
    assert cure(peers=virtual, gpus=PCIE).verdict == "healthy"


@pytest.mark.parametrize(
    "peers", [replace(REDIRECTED, redirecting=()), replace(REDIRECTED, gpus=1), None]
)
def test_bridges_that_let_pass_and_a_gpu_that_is_alone_are_let_be(
    judge: Judge, peers: Peers | None
) -> None:
    assert judge(peers=peers, gpus=PCIE).status == "clear"


def test_gpus_with_nvlink_do_not_need_the_bus(judge: Judge) -> None:
    assert judge(peers=REDIRECTED, gpus=LINKED).status == "clear"


def test_what_only_root_may_see_is_unknown(judge: Judge) -> None:
    outcome = judge(peers=replace(REDIRECTED, redirecting=None), gpus=Unknown("no driver"))
    assert outcome.status == "unknown"
    assert "root alone" in outcome.reason
    assert judge(peers=Unknown("not looked at"), gpus=PCIE).status == "unknown"
