"""What the function says is what the real loader of this machine does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linux import arrangements, lab
from tests.linux.lab import Arrangement

NAMED = [
    pytest.param(arrangement, id=f"{rule}: {name}")
    for rule, some in arrangements.ALL.items()
    for name, arrangement in some.items()
]

pytestmark = pytest.mark.skipif(lab.GCC is None, reason="no gcc to compile with")


@pytest.mark.parametrize("arrangement", NAMED)
def test_each_name_is_served_by_the_file_that_the_loader_takes(
    arrangement: Arrangement, tmp_path: Path
) -> None:
    if arrangement.cached and not lab.can_have_a_cache():
        pytest.skip("no private cache of the loader can be mounted here")
    lab.build(arrangement, tmp_path)
    if arrangement.cached:
        lab.make_cache(arrangement, tmp_path)
    seen = lab.real(arrangement, tmp_path)
    load, said = lab.predicted(arrangement, tmp_path)
    if load.problem and load.problem.kind == "not-whole":  # the words are the loader's own
        assert [a and a.partition(":")[0] for a in seen.answers] == [load.problem.culprit]
        return
    assert said.answers == seen.answers
    winners = {name: (path, why) for name, path, why in seen.found if name != "libc.so.6"}
    for name, path, why in said.found:
        if name in winners and why != "LD_PRELOAD":
            assert (path, why) == winners[name]
    opened = [Path(p) for p in seen.objects]
    assert {p for p in opened if p.is_relative_to(tmp_path)} == {
        Path(p) for p in said.objects if Path(p).is_relative_to(tmp_path)
    } - {tmp_path / "program"}


def test_there_are_at_least_three_for_each_rule() -> None:
    assert all(len(some) >= 3 for some in arrangements.ALL.values())
    assert len(NAMED) >= 30
