"""Several ranks print into one log; each line is read as the rank's that printed it."""

from __future__ import annotations

import pytest

from torchdoctor.facts import Symptom
from torchdoctor.reading import ranks
from torchdoctor.reading.traceback import Exc, Frame, exceptions, symptoms

PREFIXES = {
    "torch": "[rank{}]: ",
    "torchrun --tee": "[default{}]:",
    "a role": "[trainer{}]:",
    "a node": "[node:{}]:",
    "Open MPI": "[1,{}]<stderr>:",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_the_rank_stands_before_the_line(prefix: str) -> None:
    line = prefix.format(3) + "ValueError: bad value"
    assert ranks.split(line, labelled=False) == ("3", "ValueError: bad value")
    assert ranks.of_line(line, labelled=False) == "3"


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: bad value",
        "[0]:",
        "[1:2]<stderr>: text",
        "rank 3: text",
        "3: text",
        "[rank]: text",
    ],
)
def test_what_is_no_such_prefix_is_left(line: str) -> None:
    assert ranks.split(line, labelled=False) == ("", line)


def test_the_labels_of_srun_count_where_most_lines_have_them() -> None:
    log = "0: step 1\n1: step 1\n3: ValueError: bad value\n"
    assert ranks.labelled(log)
    assert ranks.split("3: ValueError: bad value", labelled=True) == ("3", "ValueError: bad value")
    assert not ranks.labelled("Traceback\n1: a\n2: b\nmore\nand more\n")
    assert not ranks.labelled("1: a\n2: b\n")


def test_the_watchdog_says_its_rank_inside_of_the_line() -> None:
    assert ranks.of_line("[E ProcessGroupNCCL.cpp:475] [Rank 1] W", labelled=False) == "1"
    assert ranks.of_line("[PG ID 0 PG GUID 0(default_pg) Rank 12] E", labelled=False) == "12"
    assert ranks.of_line("there are rank 3 tensors", labelled=False) == ""


def test_one_message_of_several_ranks_is_one_symptom_with_the_first_rank_first() -> None:
    said = "[rank{0}]:[E] [Rank {0}] To avoid data inconsistency, taking the entire process down."
    (symptom,) = symptoms("\n".join(said.format(rank) for rank in (3, 0, 1, 3)), "log")
    assert ranks.of(symptom) == ("3", "0", "1")
    assert ranks.of(Symptom("x")) == ()


def test_two_messages_of_one_kind_stay_two() -> None:
    text = "[rank0]: ValueError: a\n[rank1]: ValueError: b\n"
    assert [s.values["message"] for s in symptoms(text, "log")] == ["a", "b"]


MIXED = """\
[rank1]: Traceback (most recent call last):
[rank0]: Traceback (most recent call last):
[rank1]:   File "train.py", line 7, in <module>
[rank0]:   File "train.py", line 9, in <module>
[rank0]: RuntimeError: echo
[rank1]: ValueError: origin
[rank1]: more of it
"""


def test_tracebacks_whose_lines_are_mixed_are_read_rank_by_rank() -> None:
    assert exceptions(MIXED) == (
        Exc("RuntimeError", "echo", (Frame("train.py", 9, "<module>"),), rank="0"),
        Exc("ValueError", "origin\nmore of it", (Frame("train.py", 7, "<module>"),), rank="1"),
    )


def test_a_text_of_one_process_has_no_ranks() -> None:
    assert [exc.rank for exc in exceptions("ValueError: x\nKeyError: y")] == ["", ""]
