"""Answers of the trial import, whole, cut off and made up, as facts."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchdoctor.child import Run, Stream
from torchdoctor.facts import (
    NOT_COLLECTED,
    Device,
    ErrorText,
    ImportTrial,
    Runtime,
    Symptom,
    Unknown,
)
from torchdoctor.reading.import_trial import read

GOOD: dict[str, object] = {
    "stage": "xpu",
    "seconds": 1.5,
    "imported": True,
    "version": "2.9.1+cu128",
    "file": "/v/torch/__init__.py",
    "cuda": "12.8",
    "hip": None,
    "numpy": {"version": "2.4.6"},
    "cuda_available": True,
    "arch_list": ["sm_80", "sm_90"],
    "device_count": 1,
    "device 0": {
        "name": "NVIDIA H100",
        "memory": 85_000_000_000,
        "capability": [9, 0],
        "gfx": None,
        "kernel": None,
    },
    "cudnn": 91002,
    "nccl": "2.27.5",
    "mps": False,
    "xpu": False,
    "done": True,
}


def run(data: dict[str, object], outcome: str = "answered", **more: object) -> Run:
    return Run(("python",), outcome, data=data, **more)  # type: ignore[arg-type]


def trial(data: dict[str, object], outcome: str = "answered", **more: object) -> ImportTrial:
    return cast("ImportTrial", read({"import torch": run(data, outcome, **more)})["trial"])


def runtime(data: dict[str, object], outcome: str = "answered", **more: object) -> Runtime:
    found = read({"import torch": run(data, outcome, **more)})["runtime"]
    assert isinstance(found, Runtime)
    return found


def test_nothing_tried_is_nothing_known() -> None:
    assert set(read({}).values()) == {NOT_COLLECTED}


def test_a_whole_answer_becomes_facts() -> None:
    facts = read({"import torch": run(GOOD)})
    assert facts == {
        "trial": ImportTrial(
            "torch",
            "imported",
            1.5,
            stage="xpu",
            version="2.9.1+cu128",
            file="/v/torch/__init__.py",
        ),
        "trial_after": NOT_COLLECTED,
        "companion_trials": {},
        "runtime": Runtime(
            "2.9.1+cu128",
            cuda="12.8",
            available=True,
            devices=(Device(0, "NVIDIA H100", (9, 0), 85_000_000_000),),
            arch_list=("sm_80", "sm_90"),
            cudnn="9.10.2",
            nccl="2.27.5",
            mps=False,
            xpu=False,
        ),
        "symptoms": (),
    }


def test_companions_are_kept_apart() -> None:
    facts = read(
        {
            "import torch": run(GOOD),
            "import torchvision": run(GOOD | {"version": "0.24.1"}),
            "import torchaudio": run({"done": True}),
            "import other": run(GOOD),
        }
    )
    companions = cast("dict[str, ImportTrial]", facts["companion_trials"])
    assert list(companions) == ["torchvision"]
    assert companions["torchvision"].version == "0.24.1"


def test_what_was_raised_is_kept_and_the_runtime_is_unknown() -> None:
    error = {"type": "OSError", "message": "libcudnn.so.9: no", "traceback": "T", "causes": []}
    data: dict[str, object] = {"stage": "import", "error": error, "done": True}
    assert trial(data).outcome == "raised"
    assert trial(data).error == ErrorText("OSError", "libcudnn.so.9: no", "T")
    unknown = read({"import torch": run(data)})["runtime"]
    assert unknown == Unknown("torch was not imported: OSError: libcudnn.so.9: no")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0xC0000005, "0xC0000005"),
        (-1073741515, "0xC0000135"),
        (3221226505, "0xC0000409"),
        (139, "SIGSEGV"),
        (134, "SIGABRT"),
        (3, None),
        (0, None),
        (-1, None),
        (10**30, None),
    ],
)
def test_an_exit_code_is_read_as_what_it_stands_for(code: int, name: str | None) -> None:
    found = trial({"stage": "import"}, "failed", exit_code=code)
    assert (found.outcome, found.signal, found.exit_code) == ("died", name, code)


def test_an_answer_that_says_nothing_is_unknown() -> None:
    facts = read({"import torch": run({"done": True})})
    assert facts["trial"] == Unknown("the answer of the import is damaged")
    assert isinstance(facts["runtime"], Unknown)


def test_an_interpreter_that_never_began_is_no_failed_import() -> None:
    found = trial({}, "failed", exit_code=1, stderr=Stream("SyntaxError", 11))
    assert (found.outcome, found.output) == ("not-started", "SyntaxError")
    found = trial({}, "not-started", reason="No such file or directory: 'python9'")
    assert (found.outcome, found.output) == ("not-started", "No such file or directory: 'python9'")


def test_a_hang_after_the_import_keeps_what_came_before() -> None:
    data = {k: v for k, v in GOOD.items() if k not in {"done", "cuda_available", "device 0"}}
    data["stage"] = "cuda"
    found = trial(data, "timeout", seconds=60.0)
    assert (found.outcome, found.stage, found.version) == ("hung", "cuda", "2.9.1+cu128")
    assert found.seconds == 60.0
    what = runtime(data, "timeout")
    assert what.available is False
    assert what.reason == "cuda: torch did not come back"


def test_a_crash_while_asking_again_leaves_the_error_that_was_raised() -> None:
    error = {"type": "RuntimeError", "message": "operator torchvision::nms does not exist"}
    found = read({"import torchvision": run({"stage": "extensions", "error": error}, "failed")})
    trial = cast("dict[str, ImportTrial]", found["companion_trials"])["torchvision"]
    assert (trial.outcome, trial.stage) == ("raised", "extensions")


def test_a_hang_after_the_answer_is_none() -> None:
    assert trial(GOOD, "timeout").outcome == "imported"


def test_a_device_that_was_not_reached_is_not_listed() -> None:
    data = GOOD | {"stage": "device 1", "done": False}
    good, bad = runtime(data, "failed", signal="SIGSEGV").devices
    assert good.kernel is None
    assert bad == Device(1, "", kernel="device 1: torch was ended by SIGSEGV")


def test_a_device_whose_kernel_was_not_tried_is_not_taken_for_good() -> None:
    data = GOOD | {"device 0": {"name": "GPU"}, "errors": {"device 0": "RuntimeError: busy"}}
    (device,) = runtime(data).devices
    assert device.kernel == "RuntimeError: busy"


def test_the_reason_for_no_cuda_is_an_error_rather_than_a_warning() -> None:
    data = GOOD | {"cuda_available": False, "device 0": None}
    warning = {"stage": "cuda", "category": "UserWarning", "text": "CUDA initialization: x"}
    assert runtime(data | {"warning 0": warning}).reason == "CUDA initialization: x"
    assert runtime(data | {"warning 0": warning, "cuda_reason": "E: y"}).reason == "E: y"
    assert runtime(data).reason is None


@pytest.mark.parametrize(("number", "text"), [(91002, "9.10.2"), (8907, "8.9.7"), (90100, "9.1.0")])
def test_cudnns_number_is_spelled_out(number: int, text: str) -> None:
    assert runtime(GOOD | {"cudnn": number}).cudnn == text


@pytest.mark.parametrize(
    ("number", "text"), [(2708, "2.7.8"), (22705, "2.27.5"), ("2.19.3", "2.19.3")]
)
def test_nccls_number_is_spelled_out(number: object, text: str) -> None:
    assert runtime(GOOD | {"nccl": number}).nccl == text


def test_the_loaders_own_error_for_an_extension_is_read() -> None:
    files = {"_C.so": "OSError: libc10_cuda.so: cannot open shared object file", "image.so": None}
    facts = read({"import torchvision": run(GOOD | {"extensions": files})})
    (symptom,) = cast("tuple[Symptom, ...]", facts["symptoms"])
    assert symptom.values == {"library": "libc10_cuda.so"}
    assert symptom.source == "torchvision, _C.so"


def test_a_message_is_told_once_from_the_place_that_says_most() -> None:
    text = "CUDA initialization: Found no NVIDIA driver on your system."
    data = GOOD | {
        "cuda_available": False,
        "cuda_reason": f"RuntimeError: {text}",
        "warning 0": {"stage": "cuda", "text": text},
    }
    facts = read({"import torch": run(data, stderr=Stream(f"UserWarning: {text}", 10))})
    (symptom,) = cast("tuple[Symptom, ...]", facts["symptoms"])
    assert (symptom.name, symptom.source) == ("no-nvidia-driver", "torch.cuda")


def test_causes_are_searched_too() -> None:
    cause = {"type": "OSError", "message": "[WinError 127] x", "link": "cause"}
    error = {"type": "OSError", "message": "Could not load this library: C:\\v\\_C.pyd"}
    data: dict[str, object] = {
        "stage": "import",
        "error": error | {"causes": [cause]},
        "done": True,
    }
    facts = read({"import torchvision": run(data)})
    names = [symptom.name for symptom in cast("tuple[Symptom, ...]", facts["symptoms"])]
    assert names == ["library-not-loaded", "winerror-dll"]


def test_a_crash_is_read_from_what_it_printed() -> None:
    stderr = Stream("OMP: Error #15: Initializing libiomp5.so, but found libomp.so already", 50)
    facts = read(
        {"import torch": run({"stage": "import"}, "failed", signal="SIGABRT", stderr=stderr)}
    )
    (symptom,) = cast("tuple[Symptom, ...]", facts["symptoms"])
    assert symptom.name == "openmp-twice"
    assert symptom.source == "output of import torch"


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
keys = st.sampled_from(
    [
        *sorted(GOOD.keys() - {"imported"}),
        "error",
        "errors",
        "warning 0",
        "device 1",
        "extensions",
        "cuda_reason",
    ]
)
outcomes = st.sampled_from(["answered", "failed", "timeout", "not-started"])


@given(st.dictionaries(keys, json), outcomes, st.none() | st.integers())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_made_up_answer_never_raises_and_never_makes_a_wrong_type(
    data: dict[str, object], outcome: str, code: int | None
) -> None:
    facts = read({"import torch": run(GOOD | data, outcome, exit_code=code)})
    found = facts["trial"]
    assert isinstance(found, ImportTrial)
    assert isinstance(found.version, str | None)
    assert isinstance(found.stage, str)
    assert isinstance(found.seconds, float)
    what = facts["runtime"]
    assert isinstance(what, Runtime | Unknown)
    if isinstance(what, Runtime):
        assert isinstance(what.available, bool)
        assert all(isinstance(arch, str) for arch in what.arch_list)
        for device in what.devices:
            assert isinstance(device.memory, int | None)
            assert device.capability is None or len(device.capability) == 2
    assert isinstance(facts["symptoms"], tuple)


def test_an_import_after_other_modules_is_kept_under_their_names() -> None:
    command = ("python", "-", '{"after": ["PyQt6", "pyarrow"]}')
    error = {"type": "OSError", "message": "[WinError 1114]"}
    failed: dict[str, object] = {"stage": "import", "error": error}
    late = replace(run(failed), command=command)
    facts = read({"import torch": run(dict(GOOD)), "import torch after": late})
    after = facts["trial_after"]
    assert isinstance(after, dict)
    assert after["PyQt6, pyarrow"].outcome == "raised"
    gone = replace(run({"stage": "after PyQt6"}, "failed"), command=command)
    assert isinstance(read({"import torch after": gone})["trial_after"], Unknown)
