import pytest

from tests.checks.make import build, dist, dll_load, imported, interpreter, lacks, system, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import DllLoad, Unknown

LIB = r"C:\env\Lib\site-packages\torch\lib"


def here(torch: str = "2.9.1+cpu") -> dict[str, object]:
    return {
        "platform": windows(),
        "interpreter": interpreter("3.11.0", machine="AMD64"),
        "torch": build(torch),
        "torchvision": None,
        "torchaudio": None,
        "distributions": (dist("torch", torch.partition("+")[0]),),
        "gpus": (),
    }


def broken(kind: str, error: int | None, culprit: str, **changes: object) -> DllLoad:
    rest: dict[str, object] = {"place": "torch", "named": rf"{LIB}\shm.dll"}
    return dll_load(kind=kind, error=error, culprit=culprit, **rest | changes)


CASES = [
    (
        "2.4.0+cpu",
        lacks("libomp140.x86_64.dll", "fbgemm.dll"),
        "libomp140-missing",
        "fbgemm.dll needs libomp140.x86_64.dll",
        "install-torch-2-4-1-cpu",
    ),
    (
        "2.3.0+cpu",
        lacks("mkl_intel_thread.1.dll", "shm.dll", "torch_cpu.dll"),
        "mkl-dll-not-found",
        "torch_cpu.dll needs mkl_intel_thread.1.dll",
        "install-mkl-2021-4-0",
    ),
    (
        "2.9.1+cpu",
        lacks("c10.dll"),
        "torch-files-missing",
        "shm.dll needs c10.dll, a file of torch",
        "reinstall-torch",
    ),
    (
        "2.9.1+cpu",
        lacks("nvcuda.dll", "c10_cuda.dll"),
        "dll-missing",
        "c10_cuda.dll needs nvcuda.dll, which is nowhere",
        None,
    ),
    (
        "2.9.1+xpu",
        lacks("sycl8.dll", "c10_xpu.dll"),
        "xpu-runtime-missing",
        "c10_xpu.dll needs sycl8.dll of the oneAPI runtime",
        "reinstall-torch",
    ),
    (
        "2.9.1+cpu",
        lacks("uv.dll", named=r"C:\app\_internal\torch\lib\shm.dll"),
        "frozen-app-missing-dll",
        "built without uv.dll",
        "bundle-the-dll",
    ),
    (
        "2.9.1+cpu",
        broken("not-whole", 193, rf"{LIB}\c10.dll", detail="it ends at 1 of 2 bytes"),
        "torch-files-corrupt",
        "c10.dll is no whole file (it ends at 1 of 2 bytes)",
        "reinstall-torch",
    ),
    (
        "2.9.1+cpu",
        broken("wrong-machine", 193, rf"{LIB}\c10.dll", detail="it is for arm64"),
        "dll-wrong-machine",
        "it is for arm64",
        None,
    ),
    (
        "2.9.1+cpu",
        broken("no-symbol", 127, rf"{LIB}\c10.dll", symbols=("f", "g", "h")),
        "dll-symbol-missing",
        "c10.dll lacks f, g, which",
        "reinstall-torch",
    ),
    (
        "2.9.1+cpu",
        broken("no-symbol", 127, r"C:\py\python311.dll", symbols=("PyX",), place="application"),
        "python-micro-too-old",
        r"Python 3.11.0 (C:\py\python311.dll) lacks PyX",
        "new-environment-python-3-11",
    ),
    (
        "2.9.1+cpu",
        broken("no-extension", None, r"C:\env\torch\_C"),
        "torch-files-missing",
        "_C*.pyd, is not there",
        "reinstall-torch",
    ),
]


@pytest.mark.parametrize(("torch", "load", "name", "said", "step"), CASES)
def test_each_kind_has_its_name_its_words_and_its_first_step(
    judge: Judge, torch: str, load: DllLoad, name: str, said: str, step: str | None
) -> None:
    (finding,) = judge(**here(torch), windows=system(load)).findings
    assert (finding.name, finding.severity) == (name, "error")
    assert said in finding.summary
    assert [s.name for s in finding.steps[:1]] == ([step] if step else [])


@pytest.mark.parametrize(("torch", "load", "name", "said", "step"), CASES)
def test_each_first_step_cures(
    cure: Planner, torch: str, load: DllLoad, name: str, said: str, step: str | None
) -> None:
    del name, said
    plan = cure(**here(torch), windows=system(load))
    assert plan.verdict == ("healthy" if step else "broken")


@pytest.mark.parametrize(
    "load",
    [
        DllLoad(),
        dll_load(),
        lacks("MSVCP140.dll", "c10.dll"),
        lacks("vcruntime140_1.dll", "asmjit.dll"),
        broken("no-symbol", 127, r"C:\other\c10.dll", place="registered"),
        broken("not-whole", 193, r"C:\env\zlib.dll", place="application"),
    ],
)
def test_what_others_tell_is_left_to_them(judge: Judge, load: DllLoad) -> None:
    assert judge(**here(), windows=system(load)).status == "clear"


def test_a_torch_in_the_user_site_needs_the_next_release_not_mkl(judge: Judge) -> None:
    load = lacks("mkl_intel_thread.1.dll", "shm.dll", "torch_cpu.dll")
    user = dist("torch", "2.3.0", user_site=True)
    known = here("2.3.0+cpu") | {"torch": build("2.3.0+cpu", distribution=user)}
    (finding,) = judge(**known, windows=system(load)).findings
    assert [s.name for s in finding.steps] == ["install-torch-2-3-1-cpu"]


def test_what_was_assumed_makes_it_likely(judge: Judge) -> None:
    load = lacks("nvcuda.dll", assumed=("x.dll was not looked into",))
    (finding,) = judge(**here(), windows=system(load)).findings
    assert finding.confidence == "likely"
    assert "x.dll was not looked into" in {e.value for e in finding.evidence}


def test_a_torch_that_imports_is_not_judged(judge: Judge) -> None:
    quiet = judge(**here(), windows=system(lacks("c10.dll")), trial=imported())
    assert quiet.status == "clear"


def test_dlls_must_be_known(judge: Judge) -> None:
    assert judge(**here(), windows=Unknown("no record")).status == "unknown"
    assert judge(**here(), windows=None).status == "clear"
