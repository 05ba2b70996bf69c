"""The network plug-in of NCCL."""

from __future__ import annotations

from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner

FAILED = "NCCL WARN NET/OFI Request completed with error. RC: 21. Error: unknown error"
PLUGIN = "NCCL INFO NET/OFI Using aws-ofi-nccl 1.3.0aws"
VERSION = "NCCL version 2.10.3+cuda11.3"
USUAL = "NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v8 symbol."


def test_a_plugin_that_fails_is_named_with_its_nccl(judge: Judge, cure: Planner) -> None:
    text = said(PLUGIN, VERSION, FAILED)
    outcome = judge(symptoms=text)
    assert names(outcome) == {"nccl-net-plugin-mismatch": "error"}
    assert "aws-ofi-nccl 1.3.0aws beside NCCL 2.10.3" in summaries(outcome)
    plan = cure(symptoms=text)
    assert first_command(plan) == "export NCCL_NET_PLUGIN=none"
    assert plan.verdict == "healthy"


def test_a_symbol_that_cannot_be_found_in_it_does_not_load(judge: Judge) -> None:
    text = "NCCL INFO NET/Plugin: dlerror=libnccl-net.so: undefined symbol: ncclNet_v9"
    assert names(judge(symptoms=said(text))) == {"nccl-net-plugin-mismatch": "error"}


def test_versions_that_are_tried_and_a_plugin_that_is_used_are_nothing(judge: Judge) -> None:
    assert judge(symptoms=said(USUAL, PLUGIN, VERSION)).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
