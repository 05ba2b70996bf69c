from __future__ import annotations

import pytest

from torchdoctor.model import DoctorError
from torchdoctor.registry import Check
from torchdoctor.report.explain import cleaned, explain, listing


def check(name: str, family: str, explains: str, *names: str, after: tuple[str, ...] = ()) -> Check:
    reads = ("driver", "gpus")
    return Check(name, family, explains, reads, frozenset(), after, names, iter)


CHECKS = {
    c.name: c
    for c in (
        check(
            "driver",
            "cuda",
            "The driver is new enough for\nthe build.\n\nSee ``nvidia-smi``, :class:`~a.Driver`.",
            "driver-too-old",
            "driver-missing",
            after=("platform",),
        ),
        check("gpu-architecture", "cuda", "The build has code for this GPU.", "gpu-too-new"),
        check("torch", "torch", "torch is installed.", "torch-not-installed"),
    )
}


def test_a_finding_is_explained_by_its_check() -> None:
    assert explain("driver-too-old", CHECKS) == (
        "driver-too-old: a finding of the check driver (family cuda)\n"
        "\n"
        "The driver is new enough for\n"
        "the build.\n"
        "\n"
        "See `nvidia-smi`, `Driver`.\n"
        "\n"
        "Finds: driver-too-old, driver-missing\n"
        "Reads: driver, gpus\n"
        "Waits for: platform\n"
    )


def test_a_check_is_explained() -> None:
    assert explain("gpu-architecture", CHECKS).startswith(
        "gpu-architecture: a check (family cuda)\n\nThe build has code for this GPU.\n"
    )


def test_a_family_is_its_checks() -> None:
    assert explain("cuda", CHECKS) == (
        "cuda\n"
        "  driver: The driver is new enough for the build.\n"
        "    driver-too-old, driver-missing\n"
        "  gpu-architecture: The build has code for this GPU.\n"
        "    gpu-too-new\n"
    )


def test_a_name_that_is_a_check_and_a_family_is_both() -> None:
    text = explain("torch", CHECKS)
    assert "torch: a check (family torch)" in text
    assert "torch\n  torch: torch is installed." in text


def test_an_unknown_name_is_wrong_usage_with_the_nearest_names() -> None:
    with pytest.raises(DoctorError, match="did you mean driver-too-old") as raised:
        explain("driver-to-old", CHECKS)
    assert raised.value.kind == "usage"


def test_a_name_like_no_other_points_to_the_list() -> None:
    with pytest.raises(DoctorError, match="torchdoctor list") as raised:
        explain("\x1b[2J" + "q" * 10_000, CHECKS)
    assert raised.value.message.isprintable()
    assert len(raised.value.message) < 200


def test_the_list_holds_every_check_and_finding_once() -> None:
    text = listing(CHECKS)
    for c in CHECKS.values():
        assert text.count(f"  {c.name}: ") == 1
        for name in c.names:
            assert text.count(name) == 1
    assert text.startswith("cuda\n  driver: ")


def test_a_check_without_words_says_so() -> None:
    silent = {"quiet": check("quiet", "torch", "", "too-quiet")}
    assert "It says nothing of itself." in explain("quiet", silent)


def test_markup_of_docstrings_is_taken_out() -> None:
    assert cleaned("``a`` and :func:`x.y.z`") == "`a` and `z`"
