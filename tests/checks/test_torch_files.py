import pytest

from tests.checks.make import build, died, dist, imported, interpreter, linux, raised, symptom
from tests.conftest import Judge, Planner
from torchdoctor.facts import Record, Unknown

WHOLE = {
    "platform": linux(),
    "interpreter": interpreter(),
    "torch": build("2.13.0+cpu"),
    "distributions": (dist("torch", "2.13.0+cpu"),),
}


def records(name: str = "torch", **changes: object) -> dict[str, object]:
    for key in ("missing", "altered"):
        if key in changes:
            changes.setdefault(f"{key}_count", len(changes[key]))  # type: ignore[arg-type]
    return WHOLE | {"records": {name: Record(name, 9000, **changes)}}  # type: ignore[arg-type]


GONE = records(missing=("torch/lib/libc10.so",))
CUT = records(altered=("torch/lib/libtorch_cpu.so",))


def test_a_library_that_is_gone_is_named_with_how_the_import_ended(judge: Judge) -> None:
    failed = raised("OSError", "libc10.so: cannot open shared object file")
    (finding,) = judge(**GONE, trial=failed).findings
    assert (finding.name, finding.severity) == ("torch-files-missing", "error")
    assert "torch/lib/libc10.so" in finding.summary
    assert "raised OSError: libc10.so" in finding.summary
    (line,) = finding.steps[0].commands.bash
    assert "--force-reinstall --no-deps torch==2.13.0+cpu" in line


def test_a_file_of_another_size_that_crashes_names_the_signal(judge: Judge) -> None:
    (finding,) = judge(**CUT, trial=died("SIGBUS")).findings
    assert (finding.name, finding.severity) == ("torch-files-corrupt", "error")
    assert "died with SIGBUS" in finding.summary


def test_an_import_that_hangs_says_how_long(judge: Judge) -> None:
    hung = died("", outcome="hung", seconds=60.0)
    facts = records(altered=("torch/__init__.py",))
    (finding,) = judge(**facts, trial=hung).findings
    assert finding.severity == "error"
    assert "did not return within 60 s" in finding.summary


def test_a_torch_that_works_makes_it_a_warning(judge: Judge) -> None:
    assert [f.severity for f in judge(**GONE, trial=imported()).findings] == ["warning"]
    assert [f.severity for f in judge(**CUT, trial=imported()).findings] == ["warning"]


def test_without_a_trial_a_library_that_is_gone_is_an_error(judge: Judge) -> None:
    assert [f.severity for f in judge(**GONE).findings] == ["error"]


@pytest.mark.parametrize(
    "file",
    [
        "torch/include/ATen/ATen.h",
        "torch/_C/__init__.pyi",
        "torch/lib/libx.a",
        "../../bin/torchrun",
    ],
)
def test_what_is_not_needed_to_run_is_a_note(judge: Judge, file: str) -> None:
    (finding,) = judge(**records(missing=(file,))).findings
    assert (finding.severity, finding.steps) == ("note", ())


def test_a_source_that_somebody_edited_is_a_note(judge: Judge) -> None:
    facts = records(altered=("torch/optim/adam.py",))
    (finding,) = judge(**facts, trial=imported()).findings
    assert (finding.name, finding.severity) == ("torch-files-corrupt", "note")


def test_a_companion_is_judged_by_its_own_trial(judge: Judge) -> None:
    vision = build("0.28.0+cpu", "torchvision")
    facts = records("torchvision", missing=("torchvision/_C.so",)) | {"torchvision": vision}
    failed = {"torchvision": raised("RuntimeError", "nms", "torchvision")}
    (finding,) = judge(**facts, trial=imported(), companion_trials=failed).findings
    assert finding.severity == "error"
    assert "torchvision==0.28.0+cpu" in finding.steps[0].commands.bash[0]


def test_an_editable_install_has_no_record_to_trust(judge: Judge) -> None:
    editable = (dist("torch", "2.14.0a0+git1", editable=True),)
    assert judge(**GONE | {"distributions": editable}).status == "clear"


def test_two_copies_explain_what_their_records_say(judge: Judge) -> None:
    two = (dist("torch", "2.13.0+cpu"), dist("torch", "2.9.1"))
    assert judge(**GONE | {"distributions": two}).status == "clear"


def test_registered_without_files_is_missing(judge: Judge) -> None:
    (finding,) = judge(**WHOLE | {"torch": None, "records": {}}).findings
    assert (finding.name, finding.severity) == ("torch-files-missing", "error")
    assert "torch==2.13.0+cpu" in finding.steps[0].commands.bash[0]


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (symptom("library-damaged", file="/env/x/torch/lib/libtorch_cpu.so"), "corrupt"),
        (symptom("winerror-dll", code="193", file=r"C:\e\torch\lib\caffe2.dll"), "corrupt"),
        (symptom("shared-library-missing", library="libc10.so"), "missing"),
    ],
)
def test_a_message_alone_tells_too(judge: Judge, message: object, name: str) -> None:
    facts = WHOLE | {"records": Unknown("not compared"), "symptoms": (message,)}
    (finding,) = judge(**facts).findings
    assert (finding.name, finding.confidence) == (f"torch-files-{name}", "likely")


@pytest.mark.parametrize(
    "message",
    [
        symptom("library-damaged", file="/env/site-packages/cv2/cv2.abi3.so"),
        symptom("shared-library-missing", library="libcublas.so.12"),
        symptom("winerror-dll", code="126", file=r"C:\e\torch\lib\fbgemm.dll"),
    ],
)
def test_messages_of_other_files_are_for_other_checks(judge: Judge, message: object) -> None:
    assert judge(**WHOLE, symptoms=(message,)).status == "clear"


@pytest.mark.parametrize("facts", [GONE, CUT, WHOLE | {"torch": None, "records": {}}])
def test_reinstalling_cures(cure: Planner, facts: dict[str, object]) -> None:
    assert cure(**facts).verdict == "healthy"


def test_a_torch_of_another_python_has_not_lost_its_files(judge: Judge) -> None:
    there = dist("torch", "2.13.0", folder="/opt/conda/envs/a/lib/python3.12/site-packages")
    here = WHOLE | {"torch": None, "distributions": (there,)}
    assert judge(**here).status == "clear"
    assert judge(**here | {"distributions": (dist("torch", "2.13.0"),)}).status == "found"


MODULE = symptom("module-missing", "import torch", module="torch._strobelight")
STOPPED = raised("ModuleNotFoundError", "No module named 'torch._strobelight'")
HALF = {"platform": linux(), "interpreter": interpreter(), "torch": build(), "distributions": ()}


def test_a_module_of_torch_that_torch_does_not_find_is_gone(judge: Judge) -> None:
    (finding,) = judge(**HALF, symptoms=(MODULE,), trial=STOPPED).findings
    assert (finding.name, finding.severity) == ("torch-files-missing", "error")
    assert "torch._strobelight, which is not there" in finding.summary


def test_a_module_that_somebody_else_asks_for_is_no_file_of_torch(judge: Judge) -> None:
    old = symptom("module-missing", "train.py", module="torch._six")
    assert judge(**HALF, symptoms=(old,), trial=STOPPED).status == "clear"
    other = symptom("module-missing", "import torch", module="typing_extensions")
    assert judge(**HALF, symptoms=(other,), trial=STOPPED).status == "clear"
    assert judge(**HALF, symptoms=(MODULE,), trial=imported()).status == "clear"


def test_to_install_it_cures_where_nothing_owns_the_files(cure: Planner) -> None:
    assert cure(**HALF, symptoms=(MODULE,), trial=STOPPED).verdict == "healthy"
