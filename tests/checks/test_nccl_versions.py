"""Nodes with different versions of NCCL."""

from __future__ import annotations

from tests.checks.run import names, said, summaries
from tests.conftest import Judge, Planner

DIFFER = "NCCL WARN Mismatched NCCL version detected : rank 0 version 22005 rank 8 version 2804"
FAMILY = "ncclSocketInit: connecting to address with family 0 is neither AF_INET(2) nor AF_INET6"
PACKAGES = ("nvidia-nccl-cu12==2.20.5", "nvidia-nccl-cu12==2.19.3")


def test_what_nccl_says_of_it_is_read_as_versions(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(DIFFER))
    assert names(outcome) == {"nccl-version-differs": "error"}
    assert "2.20.5 and 2.8.4" in summaries(outcome)
    assert cure(symptoms=said(DIFFER)).verdict == "healthy"


def test_packages_that_differ_explain_a_broken_protocol(judge: Judge) -> None:
    outcome = judge(symptoms=said(FAMILY, *PACKAGES))
    assert names(outcome) == {"nccl-version-differs": "error"}
    assert "2.20.5 and 2.19.3" in summaries(outcome)


def test_so_do_the_lines_that_nccl_prints(judge: Judge) -> None:
    text = said(FAMILY, "NCCL version 2.21.5+cuda12.4", "NCCL version 2.20.5+cuda12.4")
    assert names(judge(symptoms=text)) == {"nccl-version-differs": "error"}


def test_two_packages_for_two_cudas_and_packages_alone_are_nothing(judge: Judge) -> None:
    other = ("nvidia-nccl-cu11==2.14.3", "nvidia-nccl-cu12==2.20.5")
    assert judge(symptoms=said(FAMILY, *other)).status == "clear"
    assert judge(symptoms=said(*PACKAGES)).status == "clear"
    assert judge(symptoms=said(FAMILY)).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
