from tests.checks.make import linux, symptom, system, windows
from tests.conftest import Judge, Planner

CV2 = (symptom("winerror-dll", module="cv2", code="126"),)


def test_cv2_on_an_edition_without_media_foundation(judge: Judge, cure: Planner) -> None:
    what = system(edition="ProfessionalN Client")
    (finding,) = judge(platform=windows(), symptoms=CV2, windows=what).findings
    assert (finding.name, finding.severity) == ("media-feature-pack-missing", "warning")
    assert "Windows ProfessionalN Client has none" in finding.summary
    assert cure(platform=windows(), symptoms=CV2, windows=what).verdict == "healthy"


def test_a_server_has_a_feature_for_it(judge: Judge) -> None:
    what = system(edition="ServerStandard Server Core")
    (finding,) = judge(platform=windows(), symptoms=CV2, windows=what).findings
    assert finding.steps[0].commands.powershell == (
        "Install-WindowsFeature Server-Media-Foundation",
    )


def test_an_edition_that_has_it_needs_another_reason(judge: Judge) -> None:
    what = system(edition="Professional Client")
    assert judge(platform=windows(), symptoms=CV2, windows=what).status == "clear"


def test_an_edition_that_is_not_known_makes_it_possible(judge: Judge) -> None:
    (finding,) = judge(platform=windows(), symptoms=CV2).findings
    assert finding.confidence == "possible"


def test_torch_s_own_message_is_not_about_this(judge: Judge) -> None:
    own = (symptom("winerror-dll", module="_C", code="126"),)
    assert judge(platform=windows(), symptoms=own).status == "clear"
    assert judge(platform=linux(), symptoms=CV2).status == "clear"
    assert judge(platform=windows()).status == "unknown"
