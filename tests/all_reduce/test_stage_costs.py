"""The bench tells what a stage costs by itself from what ranks waited before it."""

from __future__ import annotations

from tests.bench.bench_stages import JUDGED, Cost, costs, report
from torchdoctor.distributed.stages import STAGES


def rank(**stages: tuple[float, float]) -> dict[str, object]:
    """Return a rank that entered and left each of *stages* at these seconds."""
    events = [
        {"stage": stage.replace("_", "-"), "ev": kind, "t": at}
        for stage, times in stages.items()
        for kind, at in zip(("enter", "ok"), times, strict=True)
    ]
    return {"events": events}


def test_what_one_rank_waits_for_the_import_of_another_is_no_cost_of_the_stage() -> None:
    found = costs([rank(check_in=(2.0, 5.010)), rank(check_in=(5.0, 5.030))])
    assert round(found["check-in"].first) == 10
    assert round(found["check-in"].last) == 30


def test_a_stage_that_one_rank_alone_goes_through_is_measured_and_one_not_left_is_not() -> None:
    found = costs([rank(tcp=(1.0, 1.25)), {"events": [{"stage": "store", "ev": "enter", "t": 1}]}])
    assert found == {"tcp": Cost(250.0, 250.0)}


def test_a_stage_over_the_limit_misses_it_unless_a_bare_run_has_it_too() -> None:
    cheap = dict.fromkeys(STAGES[:-1], Cost(1.0, 2.0))
    assert report([cheap])[1]
    assert report([cheap | {"import": Cost(4000.0, 5000.0)}])[1]
    for stage in JUDGED:
        text, met = report([cheap | {stage: Cost(1.0, 100.0)}])
        assert not met
        assert text.count("FAIL") == 2


def test_a_stage_that_no_run_tells_misses_its_limit() -> None:
    cheap = dict.fromkeys(STAGES[:-1], Cost(1.0, 2.0))
    del cheap["pairwise"]
    assert not report([cheap])[1]
