from tests.checks.make import build, dll_error, dll_load, linux, system, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import DllLoad

OLD = "caffe2_observers.dll"
PATH = rf"C:\env\Lib\site-packages\torch\lib\{OLD}"
LOAD = dll_load(error=127, kind="no-symbol", named=PATH, culprit=r"C:\torch_cpu.dll", place="torch")


def test_a_stranger_that_stops_torch_is_deleted(judge: Judge, cure: Planner) -> None:
    known = {"platform": windows(), "windows": system(LOAD, strangers=(OLD,)), "symptoms": ()}
    (finding,) = judge(**known).findings
    assert (finding.name, finding.severity) == ("torch-stale-dll", "error")
    assert f"{OLD} in torch\\lib is not a file of this torch" in finding.summary
    assert finding.steps[0].commands.powershell == (f"Remove-Item -LiteralPath '{PATH}'",)
    assert cure(**known).verdict == "healthy"


def test_a_stranger_that_does_no_harm_is_a_note(judge: Judge) -> None:
    quiet = system(DllLoad(), strangers=(OLD,))
    (finding,) = judge(platform=windows(), windows=quiet, symptoms=()).findings
    assert (finding.severity, finding.steps) == ("note", ())


def test_a_folder_as_published_is_in_order(judge: Judge) -> None:
    own = system(LOAD, strangers=())
    assert judge(platform=windows(), windows=own, symptoms=()).status == "clear"


def test_the_message_that_names_a_file_no_new_torch_has(judge: Judge) -> None:
    seen = (dll_error("127", OLD),)
    (finding,) = judge(platform=windows(), symptoms=seen, torch=build("2.4.1+cpu")).findings
    assert (finding.severity, finding.confidence) == ("error", "likely")


def test_near_misses_of_the_message(judge: Judge) -> None:
    named = (dll_error("127", "torch_python.dll"),)
    assert judge(platform=windows(), symptoms=named).status == "clear"
    lost = (dll_error("126", OLD),)
    assert judge(platform=windows(), symptoms=lost).status == "clear"
    seen = (dll_error("127", OLD),)
    old = judge(platform=windows(), symptoms=seen, torch=build("1.10.2+cpu"))
    assert old.status == "clear"
    assert judge(platform=linux(), symptoms=seen).status == "clear"
