from dataclasses import replace

import pytest

from tests.checks.make import build, dist, interpreter, linux, loader, symptom, unloadable
from tests.conftest import Judge, Planner
from torchdoctor.facts import SoLoad

SYMBOL = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


def facts(*installed: object, torch: str = "2.6.0+cu124") -> dict[str, object]:
    return {
        "platform": linux(),
        "interpreter": interpreter("3.11.9"),
        "torch": build(torch),
        "distributions": (dist("torch", torch), *installed),
    }


def said(file: str, **values: str) -> dict[str, object]:
    known = {"family": "torch", "symbol": SYMBOL, "file": f"/x/lib/python3.11/site-packages/{file}"}
    return {"symptoms": (symptom("undefined-symbol", **known | values),)}


FLASH = dist("flash-attn", "2.8.0.post2")
XFORMERS = dist("xformers", "0.0.29.post1", requires=("torch==2.5.1", "numpy"))
FLASH_FILE = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"


def test_a_pin_on_another_torch_is_a_warning(judge: Judge) -> None:
    (finding,) = judge(**facts(XFORMERS)).findings
    assert (finding.name, finding.severity) == ("ext-abi-mismatch", "warning")
    assert "xformers 0.0.29.post1 is built for torch ==2.5.1" in finding.summary
    (line,) = finding.steps[0].commands.bash
    assert line.endswith(
        "--no-deps xformers==0.0.29.post3 --index-url https://download.pytorch.org/whl/cu124"
    )
    assert [s.name for s in finding.steps][-1] == "uninstall-xformers"


def test_a_message_that_names_the_file_is_enough(judge: Judge) -> None:
    (finding,) = judge(**facts(FLASH), **said(FLASH_FILE)).findings
    assert SYMBOL in finding.summary
    assert "--no-build-isolation" in finding.steps[0].commands.bash[0]


@pytest.mark.parametrize("label", ["pt21cu121", "cu12torch2.1cxx11abiFALSE"])
def test_the_label_of_a_wheel_names_its_torch(judge: Judge, label: str) -> None:
    scatter = dist("torch-scatter", f"2.1.2+{label}")
    assert judge(**facts(scatter, torch="2.1.2+cu121")).status == "clear"
    (finding,) = judge(**facts(scatter)).findings
    assert "built for torch ==2.1.*" in finding.summary


def test_the_stable_abi_counts_more_than_the_pin(judge: Judge) -> None:
    stable = dist("xformers", "0.0.34", requires=("torch==2.10.0",))
    assert judge(**facts(stable, torch="2.13.0+cu130")).status == "clear"
    assert judge(**facts(stable, torch="2.9.1+cu128")).status == "found"


def test_a_vllm_is_told_with_the_release_for_this_torch(judge: Judge) -> None:
    vllm = dist("vllm", "0.14.1", requires=("torch==2.9.1",))
    (finding,) = judge(**facts(vllm, torch="2.13.0+cu130")).findings
    assert "vllm==0.32.0" in finding.steps[0].commands.bash[0].replace("===", "==")


def test_a_pin_that_torch_meets_is_in_order(judge: Judge) -> None:
    good = dist("xformers", "0.0.29.post3", requires=("torch==2.6.0",))
    assert judge(**facts(good)).status == "clear"


@pytest.mark.parametrize(
    "other",
    [
        dist("accelerate", "1.15.0", requires=("torch>=9",)),
        dist("torchvision", "0.20.1", requires=("torch==2.5.1",)),
        dist("torchao", "0.14.1", requires=()),
        dist("flash-attn", "2.7.4.post1", requires=("torch", "einops")),
    ],
)
def test_what_tells_nothing_certain_is_in_order(judge: Judge, other: object) -> None:
    assert judge(**facts(other)).status == "clear"


@pytest.mark.parametrize(
    "file", ["torchvision/_C.so", "torch/lib/libtorch_python.so", "somebody_else/_C.so"]
)
def test_a_message_of_another_file_blames_nobody_here(judge: Judge, file: str) -> None:
    assert judge(**facts(FLASH), **said(file)).status == "clear"


def test_a_missing_symbol_of_cuda_blames_no_extension(judge: Judge) -> None:
    assert judge(**facts(FLASH), **said(FLASH_FILE, family="cuda")).status == "clear"


def test_torchtext_beside_a_newer_torch_is_another_check(judge: Judge) -> None:
    text = dist("torchtext", "0.17.2", requires=("torch==2.2.2",))
    assert judge(**facts(text)).status == "clear"
    assert judge(**facts(text, torch="2.3.1+cu121")).status == "found"


def test_what_is_installed_must_be_known(judge: Judge) -> None:
    assert judge(torch=build()).status == "unknown"


def test_the_right_release_cures(cure: Planner) -> None:
    assert cure(**facts(XFORMERS)).verdict == "healthy"


def test_compiling_again_cures(cure: Planner) -> None:
    plan = cure(**facts(FLASH), **said(FLASH_FILE))
    assert plan.verdict == "healthy"
    assert {s.step.name for s in plan.steps} <= {
        "compile-flash-attn-2-8-0-post2",
        "uninstall-flash-attn",
    }


def test_a_file_that_a_message_names_is_enough_where_no_list_is(
    judge: Judge, cure: Planner
) -> None:
    (finding,) = judge(**said(FLASH_FILE)).findings
    assert (finding.name, finding.severity) == ("ext-abi-mismatch", "warning")
    assert finding.summary.startswith("flash-attn is built for another torch, so")
    assert cure(**said(FLASH_FILE)).verdict == "healthy"
    for own in ("torchvision/_C.so", "torch/lib/libtorch_python.so"):
        assert judge(**said(own)).status == "unknown"


def test_what_xformers_says_is_told_by_what_differs(judge: Judge) -> None:
    def told(built: str, have: str) -> dict[str, object]:
        values = {"package": "xformers", "built": built, "have": have}
        return {"symptoms": (symptom("extension-built-for-other", "log", **values),)}

    (finding,) = judge(**told("2.1.2+cu121", "2.3.0+cu121")).findings
    assert (finding.severity, len(finding.steps)) == ("warning", 2)
    (finding,) = judge(**told("2.1.2+cu121", "2.1.2+cpu")).findings
    assert (finding.severity, finding.steps) == ("note", ())
    assert "cpu-only-build" in finding.because_of


# ---- by the symbols of the files --------------------------------------------------------------

MISFIT = unloadable(
    "symbol",
    culprit=f"/x/{FLASH_FILE}",
    place="environment",
    asks=f"/x/{FLASH_FILE}",
    names=(SYMBOL,),
)


def by_symbols(name: str, *loads: object) -> dict[str, object]:
    return {"linux": loader(extensions={name: loads}), "symptoms": ()}


def test_a_symbol_that_this_torch_has_not_decides(judge: Judge) -> None:
    (finding,) = judge(**facts(FLASH), **by_symbols("flash-attn", MISFIT)).findings
    assert (finding.name, finding.severity) == ("ext-abi-mismatch", "warning")
    assert f"{SYMBOL} is not in it, C++ ABI of GCC 5 and newer" in finding.summary
    assert "--no-build-isolation" in finding.steps[0].commands.bash[0]


def test_where_every_symbol_is_found_no_pin_counts(judge: Judge) -> None:
    assert judge(**facts(XFORMERS), **by_symbols("xformers", SoLoad())).status == "clear"
    assert judge(**facts(XFORMERS), **by_symbols("xformers")).status == "found"


@pytest.mark.parametrize(
    ("symbol", "words"),
    [
        ("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", "C++ ABI before GCC 5"),
        ("_ZN2at4_ops3add4callERKNS_6TensorES3_", "is not in it)"),
    ],
)
def test_the_symbol_tells_the_abi(judge: Judge, symbol: str, words: str) -> None:
    misfit = replace(MISFIT, names=(symbol,))
    (finding,) = judge(**facts(FLASH), **by_symbols("flash-attn", misfit)).findings
    assert words in finding.summary


def test_what_somebody_built_himself_is_told_by_its_file(judge: Judge) -> None:
    own = replace(MISFIT, culprit="/home/me/mine.so", asks="/home/me/mine.so")
    (finding,) = judge(**facts(), **by_symbols("mine", own)).findings
    assert "mine.so is built for another torch and torch is 2.6.0+cu124" in finding.summary
    assert [s.name for s in finding.steps] == ["build-mine-again"]


def test_a_cuda_library_that_a_cpu_torch_lacks_is_told(judge: Judge) -> None:
    lacks = replace(MISFIT, kind="missing", culprit="libtorch_cuda.so", names=())
    (finding,) = judge(**facts(FLASH), **by_symbols("flash-attn", lacks)).findings
    assert "libtorch_cuda.so is not in it" in finding.summary
    assert "cpu-only-build" in finding.because_of


def test_a_symbol_or_a_library_of_others_is_no_matter_of_torch(judge: Judge) -> None:
    other = replace(MISFIT, names=("av_frame_alloc",))
    absent = replace(MISFIT, kind="missing", culprit="libavcodec.so.58", names=())
    assert judge(**facts(FLASH), **by_symbols("flash-attn", other, absent)).status == "clear"


def test_torchvision_is_the_matter_of_another_check(judge: Judge) -> None:
    assert judge(**facts(), **by_symbols("torchvision", MISFIT)).status == "clear"


def test_a_step_cures_what_the_symbols_say(cure: Planner) -> None:
    assert cure(**facts(FLASH), **by_symbols("flash-attn", MISFIT)).verdict == "healthy"
