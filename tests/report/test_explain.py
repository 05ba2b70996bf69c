# ruff: noqa: RUF001 - the punctuation of Chinese is meant

from __future__ import annotations

import re

import pytest

from tests.report import catalogue
from torchdoctor import cli, locale
from torchdoctor.commands.known import known
from torchdoctor.lint.rule import all_rules
from torchdoctor.model import DoctorError
from torchdoctor.registry import Check
from torchdoctor.report import parts
from torchdoctor.report.explain import Voice, cleaned, explain, listing
from torchdoctor.tables import load


def check(name: str, family: str, explains: str, *names: str, after: tuple[str, ...] = ()) -> Check:
    reads = ("driver", "gpus")
    return Check(name, family, explains, reads, frozenset(), after, names, iter)


CHECKS = {
    c.name: c
    for c in (
        check(
            "driver",
            "cuda",
            "The driver is new enough for\nthe build.\n\nHow it shows: see ``nvidia-smi``,\n"
            ":class:`~a.Driver`.\n\nWhy: it is old.\n\nMore of that.\n\n"
            "Neighbours: none.\n\nThe fix is a newer one. Source: NVIDIA.",
            "made-up-driver",
            "driver-made-up",
            after=("platform",),
        ),
        check("gpu-architecture", "cuda", "The build has code for this GPU.", "gpu-too-new"),
        check("torch", "torch", "torch is installed.", "torch-made-up"),
    )
}
KNOWN = known()
NAMES = sorted({name for one in KNOWN.values() for name in one.names})


def test_a_finding_is_explained_in_its_parts() -> None:
    assert explain("made-up-driver", CHECKS) == (
        "made-up-driver: a finding of the check driver (family cuda)\n"
        "\n"
        "What it is: The driver is new enough for the build.\n"
        "\n"
        "How it shows: see `nvidia-smi`, `Driver`.\n"
        "\n"
        "Why: it is old.\n"
        "\n"
        "More of that.\n"
        "\n"
        "How to tell it from its neighbours: none.\n"
        "\n"
        "Fix: a newer one.\n"
        "\n"
        "Sources: NVIDIA.\n"
        "\n"
        "Finds: made-up-driver, driver-made-up\n"
        "Reads: driver, gpus\n"
        "Waits for: platform\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_has_all_six_parts(name: str) -> None:
    page = parts.page(name, KNOWN.values())
    assert page is not None
    assert [part for part in parts.PARTS if not page.parts[part]] == []
    of_its_own = "what" in parts.rows().get(name, {}) or name in all_rules()
    assert of_its_own, "the first sentence of a check says what is looked for, not what is wrong"
    whole = explain(name, KNOWN)
    assert all(f"{head}: " in whole for head in parts.PARTS.values())


def test_no_row_is_about_a_finding_that_nobody_makes() -> None:
    assert sorted(parts.rows().keys() - set(NAMES)) == []
    both = load("explained")["finding"].keys() & load("explained_scripts")["finding"].keys()
    assert not both


_NAME = re.compile(r"(?:^|[ (])([a-z0-9]+(?:-[a-z0-9]+)+)(?=[.,;:)]|$)")
PACKAGES = {"cuda-compat"}


def test_the_neighbours_of_a_row_are_names_that_exist() -> None:
    """A word with a hyphen in it that ends a clause is a name of ours."""
    for name, row in parts.rows().items():
        for other in _NAME.findall(str(row.get("apart", ""))):
            assert other in NAMES or other in KNOWN or other in PACKAGES, (name, other)
            assert other != name, name


def test_each_row_has_known_fields_and_makers() -> None:
    for name, row in parts.rows().items():
        assert set(row) <= {"by", *parts.PARTS}, name
        if "by" in row:
            assert name in KNOWN[str(row["by"])].names


def test_a_check_is_explained() -> None:
    assert explain("gpu-architecture", CHECKS).startswith(
        "gpu-architecture: a check (family cuda)\n\nThe build has code for this GPU.\n"
    )


def test_a_rule_of_lint_is_shown_with_its_examples() -> None:
    text = explain("sampler-and-shuffle", KNOWN)
    assert text.startswith("sampler-and-shuffle: a finding of the check samplers")
    assert "\nBad:\n\n    sampler = " in text
    assert "\nGood:\n\n    sampler = " in text


def test_the_narrowest_check_speaks_and_the_others_are_named() -> None:
    text = explain("shm-too-small", KNOWN)
    assert text.startswith("shm-too-small: a finding of the check shared-memory")
    assert "Found by, too: all-reduce" in text
    assert "question" not in text


def test_a_family_is_its_checks() -> None:
    assert explain("cuda", CHECKS) == (
        "cuda\n"
        "  driver: The driver is new enough for the build.\n"
        "    made-up-driver, driver-made-up\n"
        "  gpu-architecture: The build has code for this GPU.\n"
        "    gpu-too-new\n"
    )


def test_a_name_that_is_a_check_and_a_family_is_both() -> None:
    text = explain("torch", CHECKS)
    assert "torch: a check (family torch)" in text
    assert "torch\n  torch: torch is installed." in text


def test_an_unknown_name_is_wrong_usage_with_the_nearest_names() -> None:
    with pytest.raises(DoctorError, match="did you mean made-up-driver") as raised:
        explain("made-up-drver", CHECKS)
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
            assert len(re.findall(rf"(?<![\w-]){name}(?![\w-])", text)) == 1
    assert text.startswith("cuda\n  driver: ")


def test_a_check_without_words_says_so() -> None:
    silent = {"quiet": check("quiet", "torch", "")}
    assert "It says nothing of itself." in explain("quiet", silent)


def test_markup_of_docstrings_is_taken_out() -> None:
    assert cleaned("``a`` and :func:`x.y.z`") == "`a` and `z`"


# ---- in Chinese ---------------------------------------------------------------------------------


def test_a_page_is_said_in_chinese_as_far_as_it_is_translated() -> None:
    told = {"it is old.": "它太旧了。" * 20, "a newer one.": "换新的。"}
    voice = Voice(locale.speaker(locale.CHINESE).say, lambda text: told.get(text, text))
    text = explain("made-up-driver", CHECKS, voice)
    assert text.startswith("made-up-driver：检查 driver（类别 cuda）的一种问题\n\n")
    for words in (
        "是什么：The driver is new enough",
        "解决办法：换新的。",
        "来源：NVIDIA.",
        "\n\nMore of that.",
    ):
        assert words in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "".join(text.split()).count("它太旧了。") == 20


def test_no_paragraph_is_translated_that_no_page_has() -> None:
    there = set(catalogue.paragraphs())
    assert [text for text in catalogue.known_pages() if text not in there] == []


def test_a_translated_paragraph_keeps_code_and_addresses() -> None:
    fixed = re.compile(r"`[^`]+`|https?://[^\s,)]+|\b[a-z0-9]+(?:-[a-z0-9]+)+\b")
    for text, meant in catalogue.known_pages().items():
        kept = [w for w in fixed.findall(text) if w in NAMES or w.startswith(("`", "http"))]
        assert [word for word in kept if word not in meant] == [], text


def test_explain_takes_a_language(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "trio-misaligned", "--lang", "zh"]) == 0
    assert "是什么：" in capsys.readouterr().out
    assert cli.main(["explain", "no-build-fits", "--lang", "en"]) == 0
    assert "What it is: " in capsys.readouterr().out
