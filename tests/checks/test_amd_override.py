from __future__ import annotations

import pytest

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import Device, Gpu

NAVI23 = Gpu("AMD Radeon RX 6600", "amd", gfx="gfx1032")
PHOENIX = Gpu("AMD Radeon 780M", "amd", gfx="gfx1103")
OLD, NEW = make.build("2.13.0+rocm7.2"), make.build("2.14.1+rocm7.14")


def _set(value: str) -> dict[str, str]:
    return {"HSA_OVERRIDE_GFX_VERSION": value}


@pytest.mark.parametrize(
    ("torch", "card", "value", "said"),
    [
        (NEW, NAVI23, "10.3.0", "refuses to start"),
        (OLD, PHOENIX, "11.0.0", "gfx1103 faults and hangs"),
        (OLD, NAVI23, "9.4.3", "no code for gfx943"),
        (OLD, NAVI23, "gfx1030", "no version such as"),
    ],
)
def test_an_override_that_cannot_work_is_found(
    judge: Judge, cure: Planner, torch: object, card: Gpu, value: str, said: str
) -> None:
    known = {"torch": torch, "gpus": (card,), "variables": _set(value)}
    (found,) = judge(**known).findings
    assert (found.name, found.severity) == ("gfx-override-bad", "error")
    assert said in found.summary
    assert value in found.summary
    assert found.steps[0].commands.bash == ("unset HSA_OVERRIDE_GFX_VERSION",)
    assert cure(**known).verdict == "healthy"


def test_a_message_makes_it_certain(judge: Judge) -> None:
    said = make.symptom("hsa-not-started", text="HSA_STATUS_ERROR_OUT_OF_RESOURCES")
    known = {"torch": NEW, "gpus": (NAVI23,), "variables": _set("10.3.0")}
    assert judge(**known).findings[0].confidence == "likely"
    assert judge(**known, symptoms=(said,)).findings[0].confidence == "certain"


def test_an_override_that_helps_is_quiet(judge: Judge) -> None:
    assert judge(torch=OLD, gpus=(NAVI23,), variables=_set("10.3.0")).status == "clear"


def test_it_is_quiet_where_nothing_is_set_or_everything_works(judge: Judge) -> None:
    assert judge(torch=NEW, gpus=(NAVI23,), variables={}).status == "clear"
    ran = make.runtime(Device(0, "AMD Radeon 780M", gfx="gfx1103"))
    known = {"torch": OLD, "gpus": (PHOENIX,), "variables": _set("11.0.0")}
    assert judge(**known, runtime=ran).status == "clear"
    assert judge(**known | {"torch": make.build()}).status == "clear"


def test_it_cannot_tell_without_the_environment(judge: Judge) -> None:
    assert judge(torch=NEW, gpus=(NAVI23,)).status == "unknown"


def test_on_a_cpu_machine_it_is_a_note(judge: Judge) -> None:
    (found,) = judge(
        torch=NEW, gpus=(NAVI23,), variables=_set("10.3.0"), expectation=make.EXPECT_CPU
    ).findings
    assert (found.severity, found.steps) == ("note", ())
