from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner

SAID = make.symptom("torchcodec-missing", "train.log", "TorchCodec is required for ...")
NOT_LOADED = make.symptom("torchcodec-not-loaded", "train.log", "Could not load libtorchcodec")


def _trio(torch: str, torchaudio: str, *more: object) -> dict[str, object]:
    return {
        "torch": make.build(torch),
        "torchaudio": make.build(torchaudio, "torchaudio"),
        "distributions": (make.dist("torch", torch), make.dist("torchaudio", torchaudio), *more),
        "interpreter": make.interpreter(),
    }


def test_a_program_that_asked_for_it_gets_the_one_for_its_torch(
    judge: Judge, cure: Planner
) -> None:
    known = _trio("2.10.0+cpu", "2.10.0+cpu") | {"symptoms": (SAID,)}
    (found,) = judge(**known).findings
    assert (found.name, found.severity) == ("torchcodec-missing", "warning")
    assert "torchaudio 2.10.0+cpu" in found.summary
    assert "'torchcodec==0.10.*'" in found.steps[0].commands.bash[0]
    assert cure(**known).verdict == "healthy"


def test_a_torchaudio_without_it_is_worth_a_note(judge: Judge) -> None:
    (found,) = judge(**_trio("2.13.0+cpu", "2.11.0+cpu")).findings
    assert (found.name, found.severity, found.steps) == ("torchcodec-missing", "note", ())


def test_an_older_torchaudio_reads_files_by_itself(judge: Judge) -> None:
    assert judge(**_trio("2.8.0+cpu", "2.8.0+cpu")).status == "clear"


def test_one_for_another_torch_is_a_mismatch(judge: Judge, cure: Planner) -> None:
    old = make.dist("torchcodec", "0.7.0")
    known = _trio("2.13.0+cpu", "2.11.0+cpu", old) | {"symptoms": (NOT_LOADED,)}
    (found,) = judge(**known).findings
    assert (found.name, found.severity) == ("torchcodec-mismatch", "warning")
    assert "torchcodec 0.7.0 is built for torch ==2.8.*" in found.summary
    assert "torchcodec==0.16.0" in found.steps[0].commands.bash[0]
    assert cure(**known).verdict == "healthy"


def test_one_that_fits_is_quiet_and_an_unknown_one_too(judge: Judge) -> None:
    for version in ("0.14.0", "0.99.0"):
        known = _trio("2.13.0+cpu", "2.11.0+cpu", make.dist("torchcodec", version))
        assert judge(**known).status == "clear"


def test_it_cannot_tell_without_the_packages(judge: Judge) -> None:
    assert judge(torch=make.build()).status == "unknown"
    assert judge(torch=None, distributions=()).status == "clear"
