from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names

FAILS = {"torchvision": make.raised("OSError", "libpng16.so: not found", "torchvision")}


def test_a_companion_that_fails_is_a_warning(judge: Judge) -> None:
    (found,) = judge(trial=make.imported(), companion_trials=FAILS).findings
    assert (found.name, found.severity) == ("companion-import-fails", "warning")
    assert "torchvision raises OSError: libpng16.so" in found.summary


def test_death_and_silence_are_told_apart(judge: Judge) -> None:
    tried = {
        "torchvision": make.died("SIGSEGV"),
        "torchaudio": make.imported(outcome="hung", seconds=60.0),
    }
    first, second = judge(trial=make.imported(), companion_trials=tried).findings
    assert "SIGSEGV" in first.summary
    assert "60 s" in second.summary


def test_one_that_works_or_is_not_installed_is_quiet(judge: Judge) -> None:
    absent = make.raised("ModuleNotFoundError", "No module named 'torchaudio'", "torchaudio")
    tried = {"torchvision": make.imported(), "torchaudio": absent}
    assert judge(trial=make.imported(), companion_trials=tried).status == "clear"


def test_where_torch_fails_its_companions_say_nothing(judge: Judge) -> None:
    assert judge(trial=make.died("SIGSEGV"), companion_trials=FAILS).status == "clear"


def test_it_cannot_tell_without_trials(judge: Judge) -> None:
    assert judge(trial=make.imported()).status == "unknown"


def test_it_stays_in_the_plan_as_what_remains(cure: Planner) -> None:
    plan = cure(trial=make.imported(), companion_trials=FAILS)
    assert (plan.verdict, names(plan.remaining)) == ("degraded", ["companion-import-fails"])
