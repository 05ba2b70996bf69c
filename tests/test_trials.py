import pytest

from torchdoctor import trials
from torchdoctor.facts import ErrorText, ImportTrial, Unknown


def test_an_error_after_the_import_is_no_failure_of_it() -> None:
    late = ImportTrial("torch", "died", 3.0, stage="kernel 0", signal="SIGSEGV")
    assert trials.works(late)
    assert not trials.failed(late)


def test_an_unknown_trial_says_nothing() -> None:
    for trial in (Unknown("skipped"), None, ImportTrial("torch", "not-started", 0.0)):
        assert not trials.works(trial)
        assert not trials.failed(trial)


@pytest.mark.parametrize(
    ("trial", "said"),
    [
        (ImportTrial("torch", "died", 0.4, signal="SIGSEGV"), "died with SIGSEGV"),
        (ImportTrial("torch", "died", 0.4, exit_code=3), "died with exit code 3"),
        (ImportTrial("torch", "hung", 60.04), "did not return within 60 s"),
        (
            ImportTrial("torch", "raised", 0.4, error=ErrorText("OSError", "libc10.so:\n gone")),
            "raised OSError: libc10.so: gone",
        ),
    ],
)
def test_the_ending_of_an_import_in_words(trial: ImportTrial, said: str) -> None:
    assert trials.ending(trial) == said
    assert trials.evidence(trial)[0].value == f"import torch {said}"


def test_a_long_error_is_cut() -> None:
    long = ImportTrial("torch", "raised", 0.1, error=ErrorText("ImportError", "x" * 5000))
    assert len(trials.ending(long)) < 400


def test_the_trial_of_a_companion_is_named() -> None:
    vision = ImportTrial("torchvision", "died", 0.4, signal="SIGABRT")
    assert trials.evidence(vision)[0].fact == "companion_trials.torchvision"
    assert trials.of_companion({"torchvision": vision}, "torchaudio") is None


def test_what_an_import_raises_is_its_failure_though_the_trial_looked_on() -> None:
    raised = ImportTrial("torchvision", "raised", 1.0, stage="extensions")
    assert trials.failed(raised)
    assert not trials.works(raised)
