"""Direct traffic between GPUs, and what breaks it."""

from __future__ import annotations

from tests.checks import make
from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner
from torchdoctor.facts import Peers

HANGS = "all_reduce_perf -g 2 hangs"
HELPS = "it works with NCCL_P2P_DISABLE=1"
REDIRECTS = "ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+"
STRAIGHT = "ACSCtl: SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-"
GEFORCE = (
    make.nvidia("NVIDIA GeForce RTX 4090", (8, 9)),
    make.nvidia("NVIDIA GeForce RTX 4090", (8, 9), 1),
)


def test_a_bridge_that_redirects_is_certain_once_the_variable_helps(
    judge: Judge, cure: Planner
) -> None:
    text = said(HANGS, HELPS, REDIRECTS)
    outcome = judge(symptoms=text)
    assert names(outcome) == {"p2p-acs-iommu": "error"}
    assert outcome.findings[0].confidence == "certain"
    assert "ReqRedir+" in summaries(outcome)
    plan = cure(symptoms=text)
    assert "ECAP_ACS+0x6.w=0000" in first_command(plan)
    assert plan.verdict == "healthy"


def test_a_bridge_that_redirects_and_a_hang_are_likely(judge: Judge) -> None:
    assert judge(symptoms=said(HANGS, REDIRECTS)).findings[0].confidence == "likely"


def test_where_nobody_looked_the_first_command_is_the_one_that_decides(
    judge: Judge, cure: Planner
) -> None:
    assert names(judge(symptoms=said(HANGS, HELPS))) == {"p2p-acs-iommu": "error"}
    assert first_command(cure(symptoms=said(HANGS, HELPS))) == "sudo lspci -vvv | grep ACSCtl"


def test_a_run_that_hangs_and_one_with_the_variable_say_the_same(judge: Judge) -> None:
    text = said(HANGS, "$ NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 2")
    assert names(judge(symptoms=text)) == {"p2p-acs-iommu": "error"}


def test_two_drivers_of_which_one_works_are_the_driver(judge: Judge, cure: Planner) -> None:
    text = said("driver 535.113.01: works", "driver 545.23.08: hangs", HELPS)
    outcome = judge(symptoms=text)
    assert names(outcome) == {"p2p-driver-bug": "error"}
    assert "535.113.01 and not with 545.23.08" in summaries(outcome)
    assert cure(symptoms=text).verdict == "healthy"


def test_bridges_that_redirect_nothing_leave_the_driver(judge: Judge) -> None:
    assert names(judge(symptoms=said(HANGS, HELPS, STRAIGHT))) == {"p2p-driver-bug": "error"}


def test_cards_without_direct_traffic_are_told_to_switch_it_off(
    judge: Judge, cure: Planner
) -> None:
    outcome = judge(symptoms=said(HANGS, HELPS), gpus=GEFORCE)
    assert names(outcome) == {"p2p-unsupported-gpu": "error"}
    assert "RTX 4090" in summaries(outcome)
    plan = cure(symptoms=said(HANGS, HELPS), gpus=GEFORCE, variables={})
    assert first_command(plan) == "export NCCL_P2P_DISABLE=1"
    assert plan.verdict == "healthy"


def test_a_hang_where_nccl_sends_directly_is_tried_without(judge: Judge, cure: Planner) -> None:
    text = said("NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", HANGS)
    outcome = judge(symptoms=text)
    assert names(outcome) == {"p2p-acs-iommu": "error"}
    assert outcome.findings[0].confidence == "possible"
    plan = cure(symptoms=text)
    assert first_command(plan).startswith("NCCL_P2P_DISABLE=1 ")
    assert plan.verdict == "healthy"


def test_a_variable_that_does_not_help_says_nothing(judge: Judge) -> None:
    text = said(HANGS, "NCCL_P2P_DISABLE=1 does not work either")
    assert judge(symptoms=text).status == "clear"


def test_cards_that_are_only_named_count_and_an_early_driver_is_to_blame(
    judge: Judge, cure: Planner
) -> None:
    text = said("4xRTX 4090", HANGS, HELPS)
    assert names(judge(symptoms=text)) == {"p2p-unsupported-gpu": "error"}
    early = judge(symptoms=text, driver=make.driver("525.85.05"))
    assert names(early) == {"p2p-driver-bug": "error"}
    assert "525.85.05 claims it" in summaries(early)
    assert (
        "525.105.17 or newer"
        in cure(symptoms=text, driver=make.driver("525.85.05")).steps[0].step.title
    )
    for later in ("525.105.17", "535.54.03"):
        outcome = judge(symptoms=text, driver=make.driver(later))
        assert names(outcome) == {"p2p-unsupported-gpu": "error"}
    a100 = judge(symptoms=text, gpus=(make.a100(), make.a100(1)))
    assert names(a100) == {"p2p-acs-iommu": "error"}


def test_error_217_is_certain(judge: Judge) -> None:
    text = "CUDA error: peer access is not supported between these two devices"
    assert judge(symptoms=said(text)).findings[0].confidence == "certain"


def test_a_hang_alone_a_bridge_alone_and_drivers_alone_are_nothing(judge: Judge) -> None:
    for text in ((HANGS,), (REDIRECTS,), ("driver 535.113.01: works", "driver 545.23.08: hangs")):
        assert judge(symptoms=said(*text)).status == "clear", text


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"


def test_a_bridge_that_sysfs_shows_to_redirect_counts_as_one_that_lspci_shows(
    judge: Judge, cure: Planner
) -> None:
    peers = Peers(2, ("0000:00:01.0",))
    outcome = judge(symptoms=said(HANGS), peers=peers)
    assert names(outcome) == {"p2p-acs-iommu": "error"}
    assert any("0000:00:01.0" in e.value for e in outcome.findings[0].evidence)
    assert cure(symptoms=said(HANGS, HELPS), peers=peers).verdict == "healthy"
    assert judge(symptoms=said(HANGS), peers=Peers(2, ())).findings == ()
