import pytest

from tests.checks.make import build, dll_load, interpreter, lacks, system, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import DllLoad, Unknown

FILE = r"C:\env\Lib\site-packages\torchvision\_C.pyd"
UNFIT = dll_load(
    error=127,
    kind="no-symbol",
    named=FILE,
    culprit=r"C:\env\torch\lib\torch_cpu.dll",
    place="torch",
    symbols=("?a@@", "?b@@", "?c@@"),
)
HERE = {
    "platform": windows(),
    "interpreter": interpreter(machine="AMD64"),
    "torch": build("2.9.1+cpu"),
    "torchvision": build("0.24.1+cpu", "torchvision"),
    "torchaudio": build("2.9.1+cpu", "torchaudio"),
}


def test_a_function_that_torch_lacks_is_named(judge: Judge) -> None:
    what = system(DllLoad(), companions={"torchvision": UNFIT})
    (finding,) = judge(**HERE, windows=what).findings
    assert (finding.name, finding.severity) == ("companion-dll-unfit", "warning")
    assert (
        "_C.pyd of torchvision does not fit: torch_cpu.dll of this torch lacks ?a@@ and 2 more"
        in (finding.summary)
    )
    assert finding.because_of == ("trio-misaligned",)
    assert "torchvision==0.24.1" in finding.steps[0].commands.bash[0]


def test_a_part_of_the_runtime_comes_with_the_runtime(judge: Judge, cure: Planner) -> None:
    load = lacks("VCOMP140.DLL", "libtorchaudio.pyd")
    what = system(DllLoad(), companions={"torchaudio": load})
    (finding,) = judge(**HERE, windows=what).findings
    assert "needs VCOMP140.DLL, which is nowhere" in finding.summary
    assert finding.steps[0].name == "install-vc-redist"
    assert cure(**HERE, windows=what).verdict == "healthy"


def test_the_other_release_cures(cure: Planner) -> None:
    what = system(DllLoad(), companions={"torchvision": UNFIT})
    assert cure(**HERE, windows=what).verdict == "healthy"


@pytest.mark.parametrize("known", [{"torchvision": DllLoad()}, {}, Unknown("torch does not load")])
def test_what_loads_or_is_not_known_is_quiet(judge: Judge, known: object) -> None:
    assert judge(**HERE, windows=system(DllLoad(), companions=known)).status == "clear"


def test_dlls_must_be_known(judge: Judge) -> None:
    assert judge(**HERE, windows=Unknown("no record")).status == "unknown"
