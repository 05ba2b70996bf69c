from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import Expectation

WANTED = Expectation("mps")
SAID = make.symptom("mps-macos-too-old", "train.log", macos="14.0")


def _mac(version: str, torch: str = "2.13.0") -> dict[str, object]:
    return {
        "platform": make.mac(version=version),
        "torch": make.build(torch, tag="cpu"),
        "interpreter": make.interpreter(machine="macosx-11.0-arm64"),
    }


def test_a_macos_older_than_mps_needs_is_found(judge: Judge, cure: Planner) -> None:
    known = _mac("13.6") | {"expectation": WANTED}
    (found,) = judge(**known).findings
    assert (found.name, found.severity) == ("macos-too-old", "error")
    assert "macOS 14.0 or newer and this is 13.6" in found.summary
    # of 2.9 it is not known what it needs
    assert "torch===2.9.1" in found.steps[0].commands.bash[0]
    assert cure(**known).verdict == "healthy"


def test_a_message_alone_is_a_warning_and_nothing_of_it_a_note(judge: Judge) -> None:
    (warned,) = judge(**_mac("13.6"), symptoms=(SAID,)).findings
    assert (warned.severity, warned.confidence) == ("warning", "certain")
    (noted,) = judge(**_mac("13.6")).findings
    assert (noted.severity, noted.steps) == ("note", ())


def test_a_newer_macos_or_an_older_torch_is_quiet(judge: Judge) -> None:
    assert judge(**_mac("14.0"), expectation=WANTED).status == "clear"
    assert judge(**_mac("13.6", "2.8.0"), expectation=WANTED).status == "clear"
    works = make.runtime(mps=True)
    assert judge(**_mac("13.6"), runtime=works, expectation=WANTED).status == "clear"


def test_other_systems_are_quiet(judge: Judge) -> None:
    known = _mac("13.6") | {"platform": make.mac(version="13.6", machine="x86_64")}
    assert judge(**known).status == "clear"
    assert judge(**known | {"platform": make.linux()}).status == "clear"


def test_it_cannot_tell_between_the_sources_and_without_a_version(judge: Judge) -> None:
    assert judge(**_mac("13.6", "2.9.1")).status == "unknown"
    known = _mac("13.6") | {"platform": make.mac(version=None)}
    assert judge(**known).status == "unknown"
