from __future__ import annotations

import pytest

from tests.checks import make
from tests.checks.run import said as log
from tests.conftest import Judge, Planner
from torchdoctor.facts import Symptom

PYTHON_39 = "1.8.0, 1.8.1, 2.0.0, 2.1.2, 2.8.0"
PYTHON_312 = "2.2.0, 2.2.1, 2.2.2, 2.3.0, 2.4.1"
SOURCES = "0.1.2, 0.1.2.post1, 0.1.2.post2"
INDEX_121 = "2.1.0+cu121, 2.2.0+cu121, 2.5.1+cu121"


def said(requirement: str, versions: str | None = None) -> dict[str, object]:
    values = {"requirement": requirement} | ({"versions": versions} if versions else {})
    return {"symptoms": (make.symptom("no-wheel-found", "log", **values),)}


def python(version: str, **changes: object) -> dict[str, object]:
    return {"interpreter": make.interpreter(version, **changes), "platform": make.linux()}


def test_a_label_that_the_default_index_does_not_have(judge: Judge) -> None:
    (found,) = judge(**said("torch==2.1.2+cu121", PYTHON_39)).findings
    assert (found.name, found.severity, found.confidence) == ("wrong-index-url", "error", "certain")
    assert "https://download.pytorch.org/whl/cu121" in found.summary
    (line,) = found.steps[0].commands.bash
    assert "torch==2.1.2+cu121 --index-url https://download.pytorch.org/whl/cu121" in line


def test_a_label_without_a_list_is_likely_the_index(judge: Judge) -> None:
    for asked in (said("torch==2.7.0+cu126"), said("torch==2.7.0+cu126", "none")):
        (found,) = judge(**asked).findings
        assert (found.name, found.confidence) == ("wrong-index-url", "likely")


def test_a_label_that_no_release_has_gets_one_that_exists(judge: Judge) -> None:
    (found,) = judge(**said("torch==2.1.2+cu999", PYTHON_39)).findings
    assert "no index that is known" in found.summary
    assert "torch==2.1.2+cu121" in found.steps[0].commands.bash[0]


def test_a_label_of_a_release_without_this_python_is_the_python(judge: Judge) -> None:
    asked = said("torch==2.1.2+cu121", PYTHON_312)
    (found,) = judge(**asked, **python("3.12.1")).findings
    assert (found.name, found.confidence) == ("python-not-supported", "certain")
    (found,) = judge(**asked).findings
    assert (found.name, found.confidence) == ("python-not-supported", "likely")


def test_a_release_below_the_list_has_no_wheel_for_this_python(judge: Judge) -> None:
    (found,) = judge(**said("torch==1.13.1", PYTHON_312)).findings
    assert (found.name, found.confidence) == ("python-not-supported", "likely")
    assert "torch 1.13.1" in found.summary
    assert "2.2.0 to 2.4.1" in found.summary
    (found,) = judge(**said("torch==1.13.1", PYTHON_312), **python("3.12.1")).findings
    assert found.confidence == "certain"


def test_a_release_above_the_list_is_the_python_or_an_intel_mac(judge: Judge) -> None:
    above = said("torch==2.9.0", PYTHON_39)
    (found,) = judge(**above).findings
    assert (found.name, found.confidence) == ("python-not-supported", "possible")
    mac = {"platform": make.mac(machine="x86_64")}
    (found,) = judge(**said("torch==2.4.0", "2.1.2, 2.2.0, 2.2.2"), **mac).findings
    assert found.name == "platform-wheel-dropped"
    assert "2.2.2" in found.summary


def test_the_index_of_one_build_has_only_its_releases(judge: Judge) -> None:
    (found,) = judge(**said("torch==2.9.0", INDEX_121)).findings
    assert found.name == "wrong-index-url"
    assert "cu121" in found.summary


def test_a_32_bit_python_is_told_first(judge: Judge) -> None:
    (found,) = judge(**said("torch==2.1.2+cu121", SOURCES), **python("3.11.1", bits=32)).findings
    assert (found.name, found.severity) == ("python-32bit", "error")
    assert found.steps[0].name.startswith("new-environment")


def test_sources_alone_are_no_wheel(judge: Judge) -> None:
    windows = {"interpreter": make.interpreter("3.11.1"), "platform": make.windows()}
    (found,) = judge(**said("torch", SOURCES), **windows).findings
    assert (found.name, found.confidence) == ("python-32bit", "likely")
    assert judge(**said("torch", SOURCES), **python("3.11.1")).status == "unknown"
    (found,) = judge(**said("torch", SOURCES)).findings
    assert found.name == "python-not-supported"


def test_an_empty_list_is_the_python_where_it_has_no_wheels(judge: Judge) -> None:
    (found,) = judge(**said("torch", "none"), **python("3.6.8")).findings
    assert (found.name, found.confidence) == ("python-not-supported", "certain")
    (found,) = judge(**said("torch", "none")).findings
    assert (found.name, found.confidence) == ("python-not-supported", "possible")


def test_an_empty_list_is_the_index_where_the_python_has_wheels(judge: Judge) -> None:
    (found,) = judge(**said("torch", "none"), **python("3.12.0")).findings
    assert (found.name, found.confidence) == ("wrong-index-url", "likely")
    assert found.steps


def test_an_empty_list_on_a_system_without_wheels(judge: Judge) -> None:
    here = {"interpreter": make.interpreter("3.11.2"), "platform": make.linux(machine="armv7l")}
    (found,) = judge(**said("torch", "none"), **here).findings
    assert found.name == "platform-wheel-dropped"


def test_what_uv_says_of_tags_is_enough(judge: Judge) -> None:
    values = {"requirement": "torch==2.5.1", "kind": "Python ABI", "tag": "cp314"}
    (found,) = judge(symptoms=(make.symptom("wheel-tags-unmatched", "log", **values),)).findings
    assert found.name == "python-not-supported"
    assert "torch 2.5.1" in found.summary
    assert "cp314" in found.summary
    other = values | {"kind": "platform", "tag": "macosx_11_0_x86_64"}
    (found,) = judge(symptoms=(make.symptom("wheel-tags-unmatched", "log", **other),)).findings
    assert found.name == "platform-wheel-dropped"


@pytest.mark.parametrize(
    "asked",
    [
        said("torch==99.0", PYTHON_312),
        said("torch==2.1.99", PYTHON_39),
        said("torch>=2", PYTHON_312),
        said("torch==2.4.1"),
    ],
)
def test_what_is_in_no_list_is_unknown(judge: Judge, asked: dict[str, tuple[Symptom, ...]]) -> None:
    assert judge(**asked).status == "unknown"


def test_other_messages_are_nothing_to_it(judge: Judge) -> None:
    assert judge(symptoms=(make.symptom("externally-managed", "log"),)).status == "clear"
    assert judge().status == "unknown"


def test_the_steps_cure(cure: Planner) -> None:
    label = cure(**said("torch==2.1.2+cu121", PYTHON_39), **python("3.11.4"))
    assert (label.verdict, len(label.steps)) == ("healthy", 1)
    old = cure(**said("torch", "none"), **python("3.6.8"))
    assert (old.verdict, old.steps[0].step.name[:15]) == ("healthy", "new-environment")


def test_a_list_that_ends_with_the_last_torch_of_intel_macs_tells_the_mac(judge: Judge) -> None:
    (found,) = judge(**said("torch==2.4.0", "2.1.2, 2.2.0, 2.2.1, 2.2.2")).findings
    assert (found.name, found.confidence) == ("platform-wheel-dropped", "likely")


def test_a_wheel_that_was_named_as_a_file_tells_its_python(judge: Judge) -> None:
    wheel = "torch-2.1.0-cp311-cp311-win_amd64.whl"
    named = {"symptoms": (make.symptom("wheel-not-for-here", "log", wheel=wheel),)}
    (found,) = judge(**named, **python("3.12.1")).findings
    assert (found.name, found.confidence) == ("python-not-supported", "certain")
    assert "Python 3.11, and this is Python 3.12" in found.summary
    assert judge(**named, **python("3.11.1")).status == "unknown"
    other = {"symptoms": (make.symptom("wheel-not-for-here", "log", wheel="numpy-2-cp311.whl"),)}
    assert judge(**other).status == "clear"


def test_an_intel_mac_is_given_the_last_release_that_it_has(judge: Judge) -> None:
    mac = make.symptom(
        "wheel-tags-unmatched",
        requirement="torch==2.6.0",
        kind="platform",
        tag="macosx_10_16_x86_64",
    )
    (found,) = judge(symptoms=(mac,)).findings
    assert found.name == "platform-wheel-dropped"
    assert found.steps[0].commands.bash == ("python -m pip install torch===2.2.2",)
    arm = make.symptom(
        "wheel-tags-unmatched", requirement="torch==2.6.0", kind="platform", tag="win_arm64"
    )
    (found,) = judge(symptoms=(arm,)).findings
    assert found.steps == ()


# ---- an index that does not exist ---------------------------------------------------------------


def of_index(index: str, requirement: str = "torch==2.10.0") -> dict[str, object]:
    values = {"requirement": requirement, "versions": "none", "index": index}
    return {"symptoms": (make.symptom("no-wheel-found", "log", **values),)}


def test_an_index_that_never_had_the_release_is_named(judge: Judge) -> None:
    (found,) = judge(**of_index("https://download.pytorch.org/whl/cu131")).findings
    assert (found.name, found.confidence) == ("wrong-index-url", "certain")
    assert "cu131; there are cu126, cu128, cu129, cu130" in found.summary
    assert "torch==2.10.0+cu" in found.steps[0].commands.bash[0]


@pytest.mark.parametrize(
    ("index", "requirement"),
    [
        ("https://download.pytorch.org/whl/cu130", "torch==2.10.0"),
        ("https://pypi.example.org/simple", "torch==2.10.0"),
        ("https://download.pytorch.org/whl/cu131", "torch"),
        ("https://download.pytorch.org/whl/cu199", "torch==99.0.0"),
    ],
)
def test_an_index_that_exists_or_cannot_be_judged_is_not_blamed(
    judge: Judge, index: str, requirement: str
) -> None:
    (found,) = judge(**of_index(index, requirement)).findings
    assert found.name == "python-not-supported"


# ---- a package of another name ------------------------------------------------------------------

PLACEHOLDER = 'Exception: You tried to install "pytorch". The package named for PyTorch is "torch"'


def test_the_placeholder_is_no_torch(judge: Judge, cure: Planner) -> None:
    (found,) = judge(**python("3.12.4"), symptoms=log(PLACEHOLDER)).findings
    assert (found.name, found.severity) == ("wrong-package-name", "error")
    assert "pip install torch==" in found.steps[0].commands.bash[0]
    assert cure(**python("3.12.4"), symptoms=log(PLACEHOLDER)).verdict == "healthy"


def test_a_conda_package_of_that_name_is_right(judge: Judge) -> None:
    assert judge(symptoms=log("conda install pytorch -c pytorch")).status == "clear"


# ---- uv that does not say why -------------------------------------------------------------------

NONE_HERE = (
    "error: Distribution `torch=={} @ registry+https://pypi.example.org/simple` can't be installed "
    "because it doesn't have a source distribution or wheel for the current platform"
)


def test_the_tables_tell_what_uv_does_not(judge: Judge) -> None:
    here = {"interpreter": make.interpreter("3.13.1"), "platform": make.windows()}
    (found,) = judge(**here, symptoms=log(NONE_HERE.format("2.5.1"))).findings
    assert found.name == "python-not-supported"
    assert "torch==2.5.1" in found.steps[0].commands.powershell[-1]
    mac = {"interpreter": make.interpreter("3.12.1"), "platform": make.mac(machine="x86_64")}
    (found,) = judge(**mac, symptoms=log(NONE_HERE.format("2.6.0"))).findings
    assert found.name == "platform-wheel-dropped"


def test_with_a_wheel_in_the_tables_nothing_is_said(judge: Judge) -> None:
    here = {"interpreter": make.interpreter("3.12.1"), "platform": make.windows()}
    assert judge(**here, symptoms=log(NONE_HERE.format("2.5.1"))).status == "unknown"
    assert judge(symptoms=log(NONE_HERE.format("2.5.1"))).status == "unknown"
