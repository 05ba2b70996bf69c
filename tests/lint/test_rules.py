from __future__ import annotations

from collections import Counter

import pytest

from tests.lint.scripts import Sample, look, samples
from torchdoctor.lint.rule import FAMILIES, Rule, all_rules

SAMPLES = list(samples())
RULES = all_rules()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_a_rule_finds_what_it_should_and_lets_near_misses_pass(sample: Sample) -> None:
    found = look(sample.code, sample.rule)
    assert bool(found) is sample.fires, sample.code


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_no_rule_fails_on_any_sample(sample: Sample) -> None:
    look(sample.code)


def test_every_rule_has_two_firing_and_two_quiet_samples_beside_its_examples() -> None:
    counts = Counter((sample.rule, sample.fires) for sample in SAMPLES if sample.number)
    assert {rule for rule, _ in counts} == set(RULES)
    assert all(count >= 2 for count in counts.values()), counts


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda r: r.name)
def test_a_rule_is_documented_with_a_bad_and_a_good_example(rule: Rule) -> None:
    assert rule.bad
    assert rule.good
    assert rule.bad != rule.good
    assert rule.family in FAMILIES
    assert rule.title.endswith(".")
    assert len(rule.explains.partition("Bad::")[0].split("\n\n")) >= 3, "what, and why"


def test_the_rules_are_those_of_the_catalogue_by_name_and_severity() -> None:
    grave = {name for name, rule in RULES.items() if rule.severity == "error"}
    assert grave == {
        "clip-before-unscale",
        "collective-under-rank-guard",
        "forward-through-wrapper-under-rank-guard",
        "global-rank-as-device",
        "local-rank-as-sampler-rank",
        "missing-set-epoch",
        "no-main-guard",
        "process-group-not-initialised",
        "sampler-and-shuffle",
        "set-device-after-use",
        "set-device-missing",
        "sharded-twice",
        "syncbn-after-wrap",
    }
    assert len(RULES) == 43
