"""Which ranks reach a line, by every form of condition that scripts are written with."""

from __future__ import annotations

import ast

import pytest

from torchdoctor.lint import guards, source
from torchdoctor.lint.guards import Side
from torchdoctor.lint.script import Script
from torchdoctor.lint.source import Source

ONE, REST, ALONE = Side.ONE, Side.REST, Side.ALONE


def script(code: str) -> Script:
    return source.script(Source("x.py", code))


def told(test: str, *, before: str = "") -> tuple[Side | None, Side | None]:
    """Return the sides for whom *test* holds, and for whom it does not."""
    seen = script(f"{before}\nif {test}:\n    pass\n")
    branch = seen.tree.body[-1]
    assert isinstance(branch, ast.If)
    return guards.side(seen, branch.test, truth=True), guards.side(seen, branch.test, truth=False)


@pytest.mark.parametrize(
    ("test", "then", "otherwise"),
    [
        ("rank == 0", ONE, REST),
        ("0 == args.rank", ONE, REST),
        ("rank != 0", REST, ONE),
        ("rank > 0", REST, ONE),
        ("rank < 1", ONE, REST),
        ("rank <= 0", ONE, REST),
        ("not rank", ONE, REST),
        ("dist.get_rank() == 0", ONE, REST),
        ("int(os.environ['RANK']) == 0", ONE, REST),
        ("os.environ.get('LOCAL_RANK', '0') == '0'", ONE, REST),
        ("args.rank % ngpus_per_node == 0", ONE, REST),
        ("rank in {-1, 0}", ONE, REST),
        ("rank not in (0, -1)", REST, ONE),
        ("gpu_id == 0", ONE, REST),
        ("is_main_process()", ONE, REST),
        ("not accelerator.is_main_process", REST, ONE),
        ("trainer.is_global_zero", ONE, REST),
        ("rank == 0 and step % 10 == 0", ONE, None),
        ("not distributed or rank == 0", ONE, REST),
        ("rank == 0 or debug", None, REST),
        ("rank != -1", None, ALONE),
        ("rank == -1", ALONE, None),
        ("RANK > -1", None, ALONE),
        ("rank >= 0", None, ALONE),
        ("local_rank in (-1,)", ALONE, None),
        ("world_size > 1", None, ALONE),
        ("args.distributed", None, ALONE),
        ("dist.is_initialized()", None, ALONE),
        ("num_gpus == 1", ALONE, None),
        ("rank is None", ALONE, None),
        ("gpu is None", None, None),
        ("epoch == 0", None, None),
        ("bank == 0", None, None),
        ("rank < world_size", None, None),
        ("maintain", None, None),
        ("frank_value", None, None),
    ],
)
def test_a_condition_tells_one_rank_from_the_others(
    test: str, then: Side | None, otherwise: Side | None
) -> None:
    assert told(test) == (then, otherwise)


@pytest.mark.parametrize(
    "before",
    [
        "saver = rank == 0",
        "def saver(): return get_rank() == 0",
        "if many:\n    saver = rank == 0\nelse:\n    saver = True",
        "first = not rank\nsaver = first",
    ],
)
def test_a_variable_or_a_function_is_followed_to_its_condition(before: str) -> None:
    call = "saver()" if "def" in before else "saver"
    assert told(call, before=before) == (ONE, REST)


def test_a_variable_with_two_meanings_tells_nothing() -> None:
    assert told("x", before="x = rank == 0\nx = step == 0") == (None, None)
    assert told("x", before="x = rank == 0\nx = rank != 0") == (None, None)


MARKED = "here()"


@pytest.mark.parametrize(
    ("code", "open_", "side"),
    [
        ("here()", True, None),
        ("def main():\n    here()\nmain()", True, None),
        ("def other():\n    here()", False, None),
        ("def f():\n    here()\nif rank == 0:\n    f()", False, ONE),
        ("def f():\n    here()\ndef g():\n    f()\nif rank == 0:\n    g()\ng()", True, None),
        ("def w(i):\n    here()\nmp.spawn(w)", True, None),
        ("def f():\n    if rank != 0:\n        return\n    here()\nf()", False, ONE),
        ("for x in y:\n    if rank:\n        continue\n    here()", False, ONE),
        ("if rank != 0:\n    sys.exit()\nhere()", False, ONE),
        ("if rank == 0:\n    pass\nelse:\n    here()", False, REST),
        ("rank == 0 and here()", False, ONE),
        ("x = here() if rank == 0 else None", False, ONE),
        ("@rank_zero_only\ndef f():\n    here()\nf()", False, ONE),
        ("@wraps(f)\ndef f():\n    here()\nf()", True, None),
        ("with main_process_first():\n    here()", False, None),
        ("class A:\n    def f(self):\n        here()\nif rank == 0:\n    A().f()", False, ONE),
        ("def f():\n    here()\n    f()\nf()", True, None),
        ("def a():\n    b()\ndef b():\n    here()\n    a()", False, None),
    ],
)
def test_who_reaches_a_line_is_followed_through_its_callers(
    code: str,
    open_: bool,  # noqa: FBT001 - one column of a table
    side: Side | None,
) -> None:
    seen = script(f"{code}\nif __name__ == '__main__':\n    pass\n")
    (call,) = seen.named("here")
    assert guards.open_to_all(seen, call) is open_
    found = guards.only_on(seen, call)
    assert (found[0] if found else None) is side
