from tests.checks.make import build, imported, interpreter, raised, windows
from tests.conftest import Judge

APPS = r"C:\Users\u\AppData\Local\Microsoft\WindowsApps"
STORE = APPS + r"\PythonSoftwareFoundation.Python.3.12_q\python.exe"
HERE = {
    "platform": windows(),
    "torch": build("2.9.1+cpu"),
    "torchvision": None,
    "torchaudio": None,
    "distributions": (),
    "gpus": (),
}


def test_a_store_python_is_a_note(judge: Judge) -> None:
    store = interpreter(kind="store", executable=STORE)
    (finding,) = judge(**HERE, interpreter=store, trial=imported()).findings
    assert (finding.name, finding.severity, finding.steps) == ("store-python", "note", ())
    assert "Python 3.12.4 is the one of the Microsoft Store" in finding.summary


def test_a_venv_made_from_it_is_one_too(judge: Judge) -> None:
    venv = interpreter(base_prefix=STORE.rpartition("\\")[0])
    (finding,) = judge(**HERE, interpreter=venv).findings
    assert finding.name == "store-python"


def test_where_torch_fails_another_python_is_offered(judge: Judge) -> None:
    store = interpreter(kind="store", executable=STORE, machine="AMD64")
    failed = raised("OSError", "[WinError 126]")
    (finding,) = judge(**HERE, interpreter=store, trial=failed).findings
    assert finding.steps[0].commands.powershell[0].startswith("uv venv --python 3.12")


def test_a_python_of_python_org_is_not_concerned(judge: Judge) -> None:
    org = interpreter(
        kind="system", executable=r"C:\Users\u\AppData\Local\Programs\Python\Python312\python.exe"
    )
    assert judge(**HERE, interpreter=org).status == "clear"
    assert judge(platform=windows()).status == "unknown"
