"""What runs prove, and what they cost, on runs that are made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from torchdoctor.training import chart, proofs
from torchdoctor.training.proving import Proof, Trained, Wish

WISH = Wish(nproc=2, steps=4, batch=2)
DONE = {"outcome": "done"}


def report(rank: int, **more: Any) -> dict[str, Any]:
    indices = [[4 * step + 2 * i + rank for i in (0, 1)] for step in range(4)]
    base = {
        "digest": "abc",
        "losses": [4.0, 3.0, 2.0, 1.0],
        "draws": [0.1 + rank, 0.2, 0.3, 0.4],
        "indices": indices,
        "steps_an_epoch": 4,
        "seconds": {"wait": [0.5, 0.01, 0.01, 0.01], "step": [0.9, 0.04, 0.04, 0.04]},
        "communication": {"with": 0.03, "without": 0.01},
    }
    return {**base, **more}


def resumed(rank: int, **more: Any) -> dict[str, Any]:
    whole = report(rank)
    left = {name: whole[name][2:] for name in ("losses", "draws", "indices")}
    return {**whole, **left, **more}


def proof(**more: Any) -> Proof:
    runs = {
        "whole": Trained(DONE, [report(0), report(1)]),
        "single": Trained(DONE, [report(0, seconds={"wait": [0, 0.01], "step": [0, 0.03]})]),
        "alone": Trained(DONE, [report(0, losses=[4.0, 3.0, 2.0, 1.0 + 1e-9])]),
        "resumed": Trained(DONE, [resumed(0), resumed(1)]),
    }
    return Proof(WISH, **(runs | more))


def told(**more: Any) -> dict[str, str]:
    return {outcome.check: outcome.status for outcome in proofs.outcomes(proof(**more))}


def found(name: str, **more: Any) -> str:
    (outcome,) = (o for o in proofs.outcomes(proof(**more)) if o.check == name)
    (finding,) = outcome.findings
    assert finding.severity == "error"
    return f"{finding.name}: {finding.summary}"


def test_a_machine_that_trains_right_is_clear() -> None:
    assert told() == dict.fromkeys(proofs.PROVES, "clear")
    assert proofs.failures(proof()) == ()


def test_weights_that_differ_in_one_bit_are_found() -> None:
    other = Trained(DONE, [report(0), report(1, digest="abd")])
    assert found("replicas-equal", whole=other).startswith("replicas-differ: After 4 steps")


def test_a_loss_is_compared_within_its_tolerance() -> None:
    off = Trained(DONE, [report(0, losses=[4.0, 3.0, 2.0 + 1e-5, 1.0])])
    assert "In step 3" in found("loss-equal", alone=off)
    near = Trained(DONE, [report(0, losses=[4.0, 3.0, 2.0 + 1e-8, 1.0])])
    assert told(alone=near)["loss-equal"] == "clear"
    mixed = replace(proof(alone=off), wish=replace(WISH, amp="bf16"))
    assert [o.status for o in proofs.outcomes(mixed)] == ["clear"] * 4


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"draws": [0.0, 0.0]}, "rank 1 has other random numbers"),
        ({"indices": [[9, 9], [8, 8]]}, "rank 1 has other samples"),
        ({"losses": [2.0, 1.1]}, "rank 1 has other losses"),
        ({"digest": "abd"}, "rank 1 has other weights"),
    ],
)
def test_a_resumed_run_has_to_be_the_same_bit_for_bit(changed: dict[str, Any], named: str) -> None:
    run = Trained(DONE, [resumed(0), resumed(1, **changed)])
    assert named in found("resume-equal", resumed=run)


def test_a_sample_that_two_ranks_see_in_an_epoch_is_found_and_in_two_epochs_is_not() -> None:
    twice = report(1)
    twice["indices"][3] = [0, 13]
    run = Trained(DONE, [report(0), twice])
    assert "sample 0 is seen by rank 0 and by rank 1" in found("shards-disjoint", whole=run)
    short = [report(0, steps_an_epoch=3), {**twice, "steps_an_epoch": 3}]
    assert told(whole=Trained(DONE, short))["shards-disjoint"] == "clear"


def test_a_run_that_failed_is_an_error_and_its_proofs_are_unknown() -> None:
    first = {
        "rank": 1,
        "kind": "SIGKILL",
        "message": "rank 1 was ended by SIGKILL",
        "stage": "data",
    }
    run = Trained({"outcome": "failed", "first_failure": first}, [{}, {}])
    nothing = {"single": None, "alone": None, "resumed": None}
    assert told(whole=run, **nothing) == dict.fromkeys(proofs.PROVES, "unknown")
    (failure,) = proofs.failures(proof(whole=run, **nothing))
    assert failure.summary == "The run with all ranks failed; first rank 1 was ended by SIGKILL"
    assert failure.where == {"rank": 1, "stage": "data"}
    assert proofs.costs(proof(whole=run, **nothing)) is None


def test_shares_are_those_of_the_median_step() -> None:
    costs = proofs.costs(proof())
    assert costs is not None
    assert costs.step == pytest.approx(0.05)
    assert costs.input_share == pytest.approx(0.2)
    assert costs.communication_share == pytest.approx(0.4)
    assert costs.efficiency == pytest.approx(0.8)
    assert sum(chart.parts(costs).values()) == pytest.approx(1)
    rows = list(chart.bars(costs))
    assert rows[1] == "waiting for input    20.0%  ########"
    assert rows[-1].startswith("scaling efficiency   80.0%")


def test_the_page_shows_outcomes_shares_and_losses_and_escapes() -> None:
    costs = proofs.costs(proof())
    page = chart.page("a < b", proofs.outcomes(proof()), costs, [3.0, 2.0, 1.0])
    assert "<h1>a &lt; b</h1>" in page
    assert page.count('class="clear"') == 4
    assert page.count("<rect") == 3
    assert "Loss of 3 steps, 3 to 1" in page


@pytest.mark.parametrize("name", [*proofs.PROVES, *proofs.FINDS, "train-check"])
def test_each_proof_and_finding_is_explained(name: str) -> None:
    checks = proofs.as_checks()
    about = [c.explains for c in checks.values() if name in c.names or c.name == name]
    assert about
    assert len(about[0]) > 80
