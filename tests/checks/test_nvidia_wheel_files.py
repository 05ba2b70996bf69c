from tests.checks.cuda_wheels import CUBLAS, FAILED, NCCL, TRITON, with_torch
from tests.checks.make import build, interpreter, linux, symptom
from tests.conftest import Judge, Planner
from torchdoctor.facts import Record, Unknown

WHEELS = (CUBLAS, NCCL, TRITON)
NOT_COMPARED = Unknown("not compared")


def lost(file: str) -> dict[str, Record]:
    """Return the comparison with RECORD that finds one file of NCCL's wheel gone."""
    name = "nvidia-nccl-cu12"
    return {name: Record(name, 9, missing=(f"nvidia/nccl/{file}",), missing_count=1)}


def test_a_library_gone_from_an_installed_wheel_is_told_by_record(judge: Judge) -> None:
    known = with_torch(*WHEELS, records=lost("lib/libnccl.so.2"))
    (finding,) = judge(**known, trial=FAILED).findings
    assert (finding.name, finding.severity) == ("nvidia-wheel-files-missing", "error")
    assert "libnccl.so.2" in finding.summary
    assert finding.steps[0].commands.bash[0].endswith("--no-deps nvidia-nccl-cu12==2.27.5")


def test_a_message_tells_that_a_library_is_gone_too(judge: Judge) -> None:
    absent = symptom("shared-library-missing", library="libcublas.so.12")
    known = with_torch(*WHEELS, records=NOT_COMPARED, symptoms=(absent,))
    assert [f.name for f in judge(**known, trial=FAILED).findings] == ["nvidia-wheel-files-missing"]


def test_headers_gone_from_a_wheel_do_not_matter(judge: Judge) -> None:
    known = with_torch(*WHEELS, records=lost("include/nccl.h"))
    assert judge(**known).status == "clear"


def test_what_is_installed_must_be_known(judge: Judge) -> None:
    assert judge(torch=build(), platform=linux(), interpreter=interpreter()).status == "unknown"


def test_without_records_and_messages_it_is_unknown(judge: Judge) -> None:
    known = with_torch(*WHEELS, records=NOT_COMPARED)
    assert judge(**known).status == "unknown"
    assert judge(**with_torch(asks=("filelock",), records=NOT_COMPARED)).status == "clear"


def test_reinstalling_the_wheel_cures(cure: Planner) -> None:
    lost = Record("nvidia-nccl-cu12", 9, missing=("nvidia/nccl/lib/libnccl.so.2",), missing_count=1)
    plan = cure(
        **with_torch(CUBLAS, NCCL, TRITON, records={"nvidia-nccl-cu12": lost}), trial=FAILED
    )
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)
