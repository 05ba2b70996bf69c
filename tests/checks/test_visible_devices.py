from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Expectation, Gpu, Unknown

HERE = {"torch": make.build(), "gpus": (make.a100(0), make.a100(1))}


def _named(judge: Judge, value: str, **changes: object) -> list[tuple[str, str]]:
    outcome = judge(**HERE | {"variables": {"CUDA_VISIBLE_DEVICES": value}} | changes)
    return [(f.name, f.severity) for f in outcome.findings]


def test_a_number_beyond_the_gpus_hides_them_all(judge: Judge) -> None:
    (found,) = judge(**HERE, variables={"CUDA_VISIBLE_DEVICES": "2"}).findings
    assert (found.name, found.severity) == ("cuda-visible-devices-bad", "error")
    assert "CUDA_VISIBLE_DEVICES=2" in found.summary
    assert "2 GPUs" in found.summary
    assert found.steps[0].commands.bash == ("unset CUDA_VISIBLE_DEVICES",)


def test_the_first_bad_entry_ends_the_list(judge: Judge) -> None:
    assert _named(judge, "0,5,1") == [("cuda-visible-devices-bad", "warning")]


def test_a_gpu_named_twice_hides_them_all(judge: Judge) -> None:
    assert _named(judge, "0,0") == [("cuda-visible-devices-bad", "error")]


def test_unknown_uuids_are_found_and_known_ones_are_not(judge: Judge) -> None:
    assert _named(judge, "GPU-99999999") == [("cuda-visible-devices-bad", "error")]
    assert _named(judge, "GPU-00000001") == []


def test_right_lists_are_quiet(judge: Judge) -> None:
    for value in ("0", "1", "0,1", " 1, 0 "):
        assert _named(judge, value) == []
    assert judge(**HERE, variables={}).status == "clear"


def test_hiding_on_purpose_is_a_note_unless_gpus_are_expected(judge: Judge) -> None:
    for value in ("", "-1"):
        assert _named(judge, value) == [("cuda-visible-devices-bad", "note")]
        for expected in (make.EXPECT_CUDA, Expectation(gpus_at_least=1)):
            found = _named(judge, value, expectation=expected)
            assert found == [("cuda-visible-devices-bad", "error")]
        assert _named(judge, value, expectation=make.EXPECT_CPU) == []


def test_it_is_quiet_where_there_is_nothing_to_hide(judge: Judge) -> None:
    assert _named(judge, "3", gpus=()) == []
    assert _named(judge, "3", torch=make.build("2.13.0+cpu")) == []
    assert _named(judge, "MIG-1234,MIG-5678") == []


def test_amd_has_variables_of_its_own(judge: Judge) -> None:
    radeon = Gpu("AMD Instinct MI300X", "amd", index=0)
    known = {"torch": make.build("2.13.0+rocm7.2"), "gpus": (radeon,)}
    (found,) = judge(**known, variables={"HIP_VISIBLE_DEVICES": "1"}).findings
    assert "HIP_VISIBLE_DEVICES=1" in found.summary
    assert judge(**known, variables={"HIP_VISIBLE_DEVICES": "0"}).status == "clear"


def test_it_cannot_tell_without_the_gpus_or_the_variables(judge: Judge) -> None:
    known = {"torch": make.build(), "gpus": Unknown("hung")}
    assert judge(**known, variables={"CUDA_VISIBLE_DEVICES": "2"}).status == "unknown"
    assert judge(**known, variables={}).status == "clear"
    assert judge(**HERE).status == "unknown"


def test_unsetting_it_cures(cure: Planner) -> None:
    plan = cure(**HERE, variables={"CUDA_VISIBLE_DEVICES": "2", "HOME": "/home"})
    assert (plan.verdict, names(plan.remaining)) == ("healthy", [])


def test_the_message_says_that_torch_wanted_a_gpu_where_torch_is_unknown(judge: Judge) -> None:
    here = {"gpus": (make.a100(0),), "variables": {"CUDA_VISIBLE_DEVICES": "2"}}
    missed = make.symptom("cuda-no-device", "train.log")
    (found,) = judge(**here, symptoms=(missed,)).findings
    assert (found.name, found.severity) == ("cuda-visible-devices-bad", "error")
    assert judge(**here).status == "unknown"
    right = here | {"variables": {"CUDA_VISIBLE_DEVICES": "0"}}
    assert judge(**right, symptoms=(missed,)).status == "clear"
