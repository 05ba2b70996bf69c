from tests.checks.make import (
    build,
    dist,
    imported,
    interpreter,
    linux,
    raised,
    symptom,
    windows,
)
from tests.conftest import Judge, Planner

HERE: dict[str, object] = {"platform": linux(), "interpreter": interpreter()}


def pair(torch: str, vision: str) -> dict[str, object]:
    return HERE | {"torch": build(torch), "torchvision": build(vision, "torchvision")}


def plain(version: str, name: str) -> object:
    """Return a wheel of the default index whose version.py was not read."""
    return build(version, name, tag=None, cuda=None, distribution=dist(name, version))


NMS = raised("RuntimeError", "operator torchvision::nms does not exist", "torchvision")


def test_a_cuda_torchvision_beside_a_cpu_torch_shows_its_own_error(judge: Judge) -> None:
    facts = pair("2.13.0+cpu", "0.28.0+cu130")
    (finding,) = judge(**facts, companion_trials={"torchvision": NMS}).findings
    assert (finding.name, finding.severity) == ("trio-variant-mixed", "error")
    assert "built for cpu, but torchvision 0.28.0 is built for cu130" in finding.summary
    assert any("nms does not exist" in e.value for e in finding.evidence)
    (line,) = finding.steps[0].commands.bash
    assert line.endswith(
        "--no-deps torchvision==0.28.0+cpu --index-url https://download.pytorch.org/whl/cpu"
    )


def test_a_wheel_of_the_default_index_is_for_the_cuda_of_that_index(judge: Judge) -> None:
    facts = HERE | {"torch": build("2.13.0+cpu"), "torchvision": plain("0.28.0", "torchvision")}
    assert "is built for cu130" in judge(**facts).findings[0].summary
    assert judge(**facts | {"platform": windows()}).status == "clear"


def test_the_companion_of_a_plain_torch_is_the_plain_one(judge: Judge) -> None:
    torch = build("2.13.0+cu130", distribution=dist("torch", "2.13.0"))
    facts = HERE | {"torch": torch, "torchvision": build("0.28.0+cpu", "torchvision")}
    (finding,) = judge(**facts).findings
    assert finding.steps[0].commands.bash[0].endswith("--no-deps torchvision===0.28.0")


def test_a_cpu_torchvision_beside_a_cuda_torch_that_imports_is_a_warning(judge: Judge) -> None:
    tried = {"torchvision": imported(module="torchvision")}
    facts = pair("2.13.0+cu130", "0.28.0+cpu")
    assert judge(**facts, companion_trials=tried).findings[0].severity == "warning"


def test_a_message_tells_the_cuda_of_both(judge: Judge) -> None:
    said = symptom("torchaudio-cuda-mismatch", torch="11.8", torchaudio="11.7")
    audio = build("2.0.2", "torchaudio", tag=None, cuda=None, distribution=None)
    facts = HERE | {"torch": build("2.0.1+cu118"), "torchaudio": audio}
    (finding,) = judge(**facts, symptoms=(said,)).findings
    assert "torchaudio 2.0.2 is built for cu117" in finding.summary
    assert "torchaudio==2.0.2+cu118" in finding.steps[0].commands.bash[0]


def test_two_builds_of_one_major_that_import_are_in_order(judge: Judge) -> None:
    tried = {"torchvision": imported(module="torchvision")}
    facts = pair("2.8.0+cu128", "0.23.0+cu126")
    assert judge(**facts, companion_trials=tried).status == "clear"
    assert judge(**facts).status == "clear"


def test_the_same_variant_is_in_order(judge: Judge) -> None:
    assert judge(**pair("2.13.0+cu126", "0.28.0+cu126")).status == "clear"


def test_another_release_is_another_check(judge: Judge) -> None:
    assert judge(**pair("2.13.0+cpu", "0.26.0+cu128")).status == "clear"


def test_a_variant_that_nothing_tells_is_unknown(judge: Judge) -> None:
    vision = build("0.28.0", "torchvision", tag=None, cuda=None, distribution=None)
    facts = HERE | {"torch": build("2.13.0+cpu"), "torchvision": vision}
    assert judge(**facts).status == "unknown"
    tried = {"torchvision": imported(module="torchvision")}
    assert judge(**facts, companion_trials=tried).status == "clear"


def test_the_label_cures(cure: Planner) -> None:
    facts = pair("2.13.0+cpu", "0.28.0+cu130")
    plan = cure(**facts, companion_trials={"torchvision": NMS})
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)


def test_the_plain_companion_cures(cure: Planner) -> None:
    torch = build("2.13.0+cu130", distribution=dist("torch", "2.13.0"))
    facts = HERE | {"torch": torch, "torchvision": build("0.28.0+cpu", "torchvision")}
    assert cure(**facts).verdict == "healthy"


def test_the_message_of_torchaudio_tells_both_where_no_version_is_known(
    judge: Judge, cure: Planner
) -> None:
    said = symptom("torchaudio-cuda-mismatch", "log", torch="11.8", torchaudio="11.7")
    (finding,) = judge(symptoms=(said,)).findings
    assert (finding.name, finding.severity) == ("trio-variant-mixed", "error")
    assert "CUDA 11.8 and torchaudio for CUDA 11.7" in finding.summary
    (line,) = finding.steps[0].commands.bash
    assert "torchaudio==" in line
    assert line.endswith("/whl/cu118")
    assert cure(symptoms=(said,)).verdict == "healthy"
    assert judge(symptoms=()).status == "unknown"
