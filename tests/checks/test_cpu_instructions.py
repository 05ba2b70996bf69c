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


TOLD = make.symptom("fatal-signal", "a text", "import torch: SIGILL", kind="Illegal instruction")


def test_what_a_user_saw_counts_where_nothing_was_tried(judge: Judge, cure: Planner) -> None:
    (found,) = judge(symptoms=(TOLD,), cpu=make.OLD_CPU, platform=make.linux()).findings
    assert (found.name, found.confidence) == ("cpu-instruction-missing", "likely")
    assert "AVX" in found.summary
    assert found.steps[0].commands.cmd[0].endswith("-c conda-forge --override-channels pytorch-cpu")
    plan = cure(symptoms=(TOLD,), cpu=make.OLD_CPU, platform=make.linux())
    assert plan.verdict == "healthy"


def test_another_program_or_another_signal_is_not_torch(judge: Judge) -> None:
    here = {"platform": make.linux(), "cpu": make.OLD_CPU}
    other = make.symptom("fatal-signal", "a text", "$ ./ffmpeg SIGILL", kind="Illegal instruction")
    assert judge(symptoms=(other,), **here).status == "unknown"
    fault = make.symptom("fatal-signal", "a text", "import torch", kind="Segmentation fault")
    assert judge(symptoms=(fault,), **here).status == "unknown"
    assert judge(symptoms=(TOLD,), **here | {"cpu": make.NEW_CPU}).status == "clear"


def test_the_instruction_sets_tell_the_family_where_nothing_else_does(judge: Judge) -> None:
    pentium = Cpu("G4400", frozenset({"sse2", "sse4_2"}), 2)
    assert judge(symptoms=(TOLD,), cpu=pentium).status == "found"
    assert judge(symptoms=(TOLD,), cpu=PI).status == "found"
    assert judge(symptoms=(TOLD,), cpu=Cpu("?", frozenset({"vsx"}), 2)).status == "unknown"


def test_what_was_tried_goes_before_what_was_told(judge: Judge) -> None:
    here = {"platform": make.linux(), "cpu": make.OLD_CPU}
    tried = judge(symptoms=(TOLD,), **here, trial=make.imported())
    assert tried.status == "clear"
