from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import Cpu

PI = Cpu("Cortex-A72", frozenset({"fp", "asimd", "crc32"}), 4)
ILLEGAL = make.died("SIGILL")


def test_an_illegal_instruction_without_avx_is_found(judge: Judge) -> None:
    known = {"platform": make.linux(), "torch": make.build("2.13.0+cpu"), "trial": ILLEGAL}
    (found,) = judge(**known, cpu=make.OLD_CPU).findings
    assert (found.name, found.severity) == ("cpu-instruction-missing", "error")
    assert "J1900" in found.summary
    assert "AVX and AVX2" in found.summary


def test_windows_has_a_status_of_its_own_for_it(judge: Judge) -> None:
    trial = make.died("0xC000001D")
    known = {"platform": make.windows(), "torch": make.build("2.13.0+cpu"), "trial": trial}
    assert judge(**known, cpu=make.OLD_CPU).status == "found"


def test_a_missing_avx2_without_a_crash_is_quiet(judge: Judge) -> None:
    known = {"platform": make.linux(), "torch": make.build("2.13.0+cpu")}
    assert judge(**known, cpu=make.OLD_CPU, trial=make.imported()).status == "clear"
    segfault = make.died("SIGSEGV")
    assert judge(**known, cpu=make.OLD_CPU, trial=segfault).status == "clear"


def test_a_processor_that_has_them_all_is_quiet(judge: Judge) -> None:
    known = {"platform": make.linux(), "torch": make.build("2.13.0+cpu"), "trial": ILLEGAL}
    assert judge(**known, cpu=make.NEW_CPU).status == "clear"


def test_it_cannot_tell_without_flags_or_trial(judge: Judge) -> None:
    known = {"platform": make.linux(), "torch": make.build("2.13.0+cpu")}
    assert judge(**known, cpu=Cpu("?", frozenset(), 1), trial=ILLEGAL).status == "unknown"
    assert judge(**known, cpu=make.OLD_CPU).status == "unknown"


def test_a_raspberry_pi_is_given_the_release_without_lse(cure: Planner) -> None:
    plan = cure(
        platform=make.linux(machine="aarch64"),
        interpreter=make.interpreter(machine="linux-aarch64"),
        torch=make.build("2.10.0+cpu"),
        trial=ILLEGAL,
        cpu=PI,
    )
    (step,) = plan.steps
    assert plan.verdict == "healthy"
    assert "torch==2.11.0+cpu" in step.step.commands.bash[0]


def test_a_virtual_machine_is_given_the_hosts_processor(cure: Planner) -> None:
    machine = Cpu("QEMU Virtual CPU", frozenset({"sse4_2", "hypervisor"}), 2)
    known = {"platform": make.linux(), "torch": make.build("2.13.0+cpu"), "trial": ILLEGAL}
    plan = cure(**known, cpu=machine)
    assert plan.verdict == "healthy"
    assert plan.steps[0].step.name == "pass-the-host-processor-through"
