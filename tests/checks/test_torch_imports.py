from __future__ import annotations

from dataclasses import replace

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor import plan
from torchdoctor.facts import ImportTrial, Record

HERE = {"torch": make.build(), "interpreter": make.interpreter(), "platform": make.linux()}


def test_an_exception_is_given_with_its_last_line(judge: Judge) -> None:
    trial = make.raised("ImportError", "cannot import name 'x'\nmore")
    (found,) = judge(**HERE, trial=trial).findings
    assert (found.name, found.severity) == ("torch-import-fails", "error")
    assert "torch 2.13.0+cu130 raises ImportError: cannot import name 'x'" in found.summary
    assert "--force-reinstall" in found.steps[0].commands.bash[0]


def test_death_silence_and_no_start_have_sentences_of_their_own(judge: Judge) -> None:
    said = "Fatal Python error: Segmentation fault\n\nCurrent thread"
    for trial, words in (
        (make.died("SIGSEGV", output=said), "ended the interpreter (SIGSEGV): Fatal Python error"),
        (ImportTrial("torch", "hung", 60.0), "did not end within 60 s"),
        (ImportTrial("torch", "not-started", 0.0, output="no such file"), "did not start"),
        (ImportTrial("torch", "died", 1.0, exit_code=1), "(exit code 1)"),
    ):
        (found,) = judge(**HERE, trial=trial).findings
        assert words in found.summary


def test_the_chain_to_what_is_missing_is_shown(judge: Judge) -> None:
    chain = ("_C.so", "libtorch_cpu.so", "libmine.so.1")
    load = make.unloadable("missing", culprit="libmine.so.1", chain=chain, names=())
    trial = make.raised("ImportError", "libmine.so.1: cannot open shared object file")
    (found,) = judge(**HERE, trial=trial, linux=make.loader(load)).findings
    assert "_C.so -> libtorch_cpu.so -> libmine.so.1" in [e.value for e in found.evidence]
    (found,) = judge(**HERE, trial=trial, linux=make.loader()).findings
    assert len(found.evidence) == 2


def test_a_message_that_is_known_is_named(judge: Judge) -> None:
    said = make.symptom("memory-exhausted", "import torch")
    trial = make.raised("MemoryError", "")
    (found,) = judge(**HERE, trial=trial, symptoms=(said,)).findings
    assert "memory-exhausted" in found.summary


def test_files_that_were_verified_are_not_put_back(judge: Judge) -> None:
    trial = make.raised("ImportError", "?")
    records = {"torch": Record("torch", 100, hashed=100)}
    (found,) = judge(**HERE, trial=trial, records=records).findings
    assert found.steps == ()


def test_an_import_that_went_well_is_quiet(judge: Judge) -> None:
    assert judge(**HERE, trial=make.imported()).status == "clear"


def test_a_death_after_the_import_is_another_matter(judge: Judge) -> None:
    assert judge(**HERE, trial=make.died("SIGSEGV", stage="kernel 0")).status == "clear"


def test_it_cannot_tell_without_a_trial(judge: Judge) -> None:
    assert judge(**HERE).status == "unknown"


def test_a_reinstall_is_the_plan(cure: Planner) -> None:
    plan = cure(**HERE, trial=make.raised("ImportError", "?"))
    assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
    assert len(plan.steps) == 1


def test_it_is_a_symptom_below_what_explains_it(judge: Judge) -> None:
    (found,) = judge(**HERE, trial=make.raised("ImportError", "x")).findings
    assert found.summary.endswith("; no check explains it.")
    assert found.confidence == "possible"
    assert {"user-site-shadow", "nvidia-wheels-missing"} <= set(found.because_of)
    shadow = replace(found, name="user-site-shadow", severity="warning", because_of=())
    assert names(plan.ranked((found, shadow))) == ["user-site-shadow", "torch-import-fails"]
