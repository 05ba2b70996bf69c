from tests.checks.make import (
    build,
    dist,
    interpreter,
    linux,
    raised,
    symptom,
)
from tests.conftest import Judge, Planner
from torchdoctor.facts import Record, Unknown

LINUX = '; platform_system == "Linux"'
ASKS = (
    f"nvidia-cublas-cu12==12.8.4.1{LINUX}",
    f"nvidia-nccl-cu12==2.27.5{LINUX}",
    f"triton==3.5.1{LINUX}",
    "filelock",
)
CUBLAS, NCCL = dist("nvidia-cublas-cu12", "12.8.4.1"), dist("nvidia-nccl-cu12", "2.27.5")
TRITON = dist("triton", "3.5.1")
FAILED = raised("OSError", "libcublas.so.12: cannot open shared object file")


def facts(*installed: object, asks: tuple[str, ...] = ASKS, **more: object) -> dict[str, object]:
    torch = dist("torch", "2.9.1", requires=asks)
    known: dict[str, object] = {
        "platform": linux(),
        "interpreter": interpreter(),
        "torch": build("2.9.1+cu128", distribution=torch),
        "distributions": (torch, *installed),
    }
    return known | more


def test_a_library_gone_from_an_installed_wheel_is_told_by_record(judge: Judge) -> None:
    lost = Record("nvidia-nccl-cu12", 9, missing=("nvidia/nccl/lib/libnccl.so.2",), missing_count=1)
    known = facts(CUBLAS, NCCL, TRITON, records={"nvidia-nccl-cu12": lost})
    (finding,) = judge(**known, trial=FAILED).findings
    assert (finding.name, finding.severity) == ("nvidia-wheel-files-missing", "error")
    assert "libnccl.so.2" in finding.summary
    assert finding.steps[0].commands.bash[0].endswith("--no-deps nvidia-nccl-cu12==2.27.5")


def test_a_message_tells_that_a_library_is_gone_too(judge: Judge) -> None:
    absent = symptom("shared-library-missing", library="libcublas.so.12")
    known = facts(CUBLAS, NCCL, TRITON, records=Unknown("not compared"), symptoms=(absent,))
    assert [f.name for f in judge(**known, trial=FAILED).findings] == ["nvidia-wheel-files-missing"]


def test_headers_gone_from_a_wheel_do_not_matter(judge: Judge) -> None:
    lost = Record("nvidia-nccl-cu12", 9, missing=("nvidia/nccl/include/nccl.h",), missing_count=1)
    known = facts(CUBLAS, NCCL, TRITON, records={"nvidia-nccl-cu12": lost})
    assert judge(**known).status == "clear"


def test_what_is_installed_must_be_known(judge: Judge) -> None:
    assert judge(torch=build(), platform=linux(), interpreter=interpreter()).status == "unknown"


def test_without_records_and_messages_it_is_unknown(judge: Judge) -> None:
    known = facts(CUBLAS, NCCL, TRITON, records=Unknown("not compared"))
    assert judge(**known).status == "unknown"
    assert judge(**facts(asks=("filelock",), records=Unknown("not compared"))).status == "clear"


def test_reinstalling_the_wheel_cures(cure: Planner) -> None:
    lost = Record("nvidia-nccl-cu12", 9, missing=("nvidia/nccl/lib/libnccl.so.2",), missing_count=1)
    plan = cure(**facts(CUBLAS, NCCL, TRITON, records={"nvidia-nccl-cu12": lost}), trial=FAILED)
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)
