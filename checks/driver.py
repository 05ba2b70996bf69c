"""The NVIDIA driver is there, answers, and is new enough for the CUDA of torch.

How it shows: "Found no NVIDIA driver on your system"; "The NVIDIA driver on your system is too old
(found version 11040)", where 11040 is CUDA 11.4; "CUDA driver version is insufficient for CUDA
runtime version" (error 35); ``nvidia-smi`` that never returns.

Why: a wheel brings its own CUDA runtime and needs the driver only, never the toolkit. Any driver of
a CUDA major runs every build of that major: 525.60.13 is enough for all 12.x builds, 580.65.06 for
all 13.x (528.33 and 580.88 on Windows), whatever "CUDA Version" nvidia-smi prints. Inside WSL the
driver is the one of Windows. A CUDA build on a machine without a GPU and a driver is healthy: it
runs on the CPU. A driver that hangs says nothing of the GPUs; a stuck GPU or module is the cause.

The fix for an old driver is a build of the same release for an older CUDA, or a newer driver.
Sources: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html, the
driver table of the CUDA release notes, the distributions' pages on NVIDIA drivers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import choose, effects, gpu, steps
from torchdoctor.facts import (
    Build,
    Container,
    Driver,
    Expectation,
    Facts,
    Gpu,
    Kernel,
    Platform,
    Runtime,
    Symptom,
    Unknown,
)
from torchdoctor.model import CannotTell, Commands, Evidence, Finding, Layer, Severity, Step
from torchdoctor.tables import drivers

FAMILY = "gpu"
FINDS = ("driver-missing", "driver-too-old", "driver-not-answering")


def check(
    platform: Platform | Unknown,
    torch: Build | Unknown | None,
    driver: Driver | Unknown | None,
    gpus: tuple[Gpu, ...] | Unknown,
    kernel: Kernel | Unknown,
    container: Container | Unknown | None,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Judge the driver by what it says, and by what the build of torch needs of it."""
    if isinstance(platform, Platform) and (platform.system == "darwin" or platform.wsl == 1):
        return
    if isinstance(driver, Driver) and gpu.silent(driver):
        yield _not_answering(driver, expectation)
        return
    too_old = gpu.symptom(symptoms, "cuda-driver-too-old", "cuda-needs-newer-driver")
    cuda = _cuda(torch, too_old)
    if isinstance(driver, Unknown):
        if (told := _by_message(facts)) is not None:
            yield from told
            return
        if not (too_old and cuda):
            raise CannotTell(f"driver: {driver.reason}")
    if driver is None or (isinstance(driver, Driver) and gpu.not_loaded(driver)):
        if isinstance(container, Container):
            return  # a container gets its driver from the host: that is another check's subject
        if cuda or gpu.expects_cuda(expectation):
            nouveau = isinstance(kernel, Kernel) and "nouveau" in kernel.modules
            yield _missing(driver, cuda, facts, nouveau=nouveau)
        return
    if cuda and not gpu.available(runtime) and not _no_nvidia(gpus):
        yield from _too_old(cuda, driver, too_old, facts)


def _cuda(torch: Build | Unknown | None, message: Symptom | None) -> str | None:
    """Return the CUDA of *torch*; where only its message is known, the oldest that it can be.

    A driver runs every build of its CUDA major, so what calls it too old is of the next one.
    """
    if torch is None or (isinstance(torch, Build) and gpu.kind(torch)):
        return gpu.cuda(torch) if torch else None
    major = (message.values.get("cuda", "") if message else "").partition(".")[0]
    return f"{int(major) + 1}.0" if major.isdigit() else None


def _no_nvidia(gpus: tuple[Gpu, ...] | Unknown) -> bool:
    return not isinstance(gpus, Unknown) and not gpu.of_nvidia(gpus)


def _not_answering(driver: Driver, expectation: Expectation) -> Finding:
    asked = driver.source or "nvidia-smi"
    what = "did not answer within its deadline" if driver.hung else "printed what cannot be read"
    said = driver.error if driver.hung and driver.error else f"{asked} {what}"
    if said.startswith("the "):
        said = "T" + said[1:]
    cpu = expectation.accelerator == "cpu"
    again = steps.reboot(
        why="A stuck driver or GPU comes back with a reboot; `sudo dmesg` shows lines with NVRM or"
        " Xid before it, if it was stuck.",
    )
    return Finding(
        "driver-not-answering",
        "note" if cpu else "warning",
        f"{said}, so nothing is known of the driver and its GPUs.",
        (Evidence("driver", driver.error or what, asked),),
        () if cpu else (again,),
        confidence="likely",
    )


def _told(said: Symptom, expectation: Expectation) -> Finding:
    """Return that somebody writes of an nvidia-smi that does not end."""
    found = _not_answering(Driver(None, source="nvidia-smi", hung=True), expectation)
    again = [
        replace(step, effect=effects.then(step.effect, effects.settled(said.name)))
        for step in found.steps
    ]
    evidence = (Evidence("symptoms", said.text.strip()[:300], said.source),)
    return replace(found, evidence=evidence, steps=tuple(again))


def _missing(driver: Driver | None, cuda: str | None, facts: Facts, *, nouveau: bool) -> Finding:
    cards = gpu.of_nvidia(facts.gpus)
    asked = gpu.asked_for(facts.symptoms)
    severity: Severity = "warning" if cards else "note"
    if facts.expectation.accelerator == "cpu":
        severity = "note"
    elif asked or gpu.expects_cuda(facts.expectation):
        severity = "error"
    if driver:
        state, seen = "is not loaded", [Evidence("driver", driver.error or "9", driver.source)]
    else:
        state = "is not installed"
        seen = [Evidence("driver", "not there", "NVML, nvidia-smi, /proc/driver/nvidia")]
    if nouveau:
        seen.append(Evidence("kernel.modules", "nouveau", "/proc/modules"))
    if asked:
        seen.append(Evidence("symptoms", asked.text, asked.source))
    who = f"torch is a CUDA {cuda} build" if cuda else "CUDA is expected"
    there = f"the NVIDIA driver {state}"
    if cards:
        there = f"the NVIDIA driver for {cards[0].name} {state}"
        there += "; nouveau drives it, which has no CUDA" if nouveau else ""
    elif not isinstance(facts.gpus, Unknown):
        there = f"no NVIDIA GPU is on this machine and its driver {state}"
    return Finding(
        "driver-missing",
        severity,
        f"{who} and {there}, so torch runs on the CPU.",
        tuple(seen),
        () if severity == "note" else tuple(_install(driver, cuda, facts)),
    )


def _by_message(facts: Facts) -> Iterator[Finding] | None:
    """Return what a message alone says of the driver, and None where it says nothing."""
    if said := gpu.symptom(facts.symptoms, "nvidia-smi-hangs"):
        return iter((_told(said, facts.expectation),))
    none = gpu.symptom(facts.symptoms, "no-nvidia-driver")
    if none and (_no_nvidia(facts.gpus) or not isinstance(facts.container, Container)):
        return _said_missing(none, facts)
    return None


def _said_missing(message: Symptom, facts: Facts) -> Iterator[Finding]:
    """Yield the finding where only torch's message tells of the driver."""
    if _no_nvidia(facts.gpus):
        raise CannotTell("no NVIDIA GPU is listed here: that torch asks for one is another fault")
    if gpu.available(facts.runtime) or gpu.hidden_by(facts.variables):
        return
    cpu = facts.expectation.accelerator == "cpu"
    yield Finding(
        "driver-missing",
        "note" if cpu else "error",
        "torch was asked for a GPU and found no NVIDIA driver.",
        (Evidence("symptoms", message.text, message.source),),
        () if cpu else tuple(_install(None, None, facts)),
        confidence="likely",
        because_of=("container-no-gpu", "wsl1-no-gpu"),
    )


def _install(driver: Driver | None, cuda: str | None, facts: Facts) -> Iterator[Step]:
    cards = gpu.of_nvidia(facts.gpus)
    if not cards and not isinstance(facts.gpus, Unknown):
        return  # no driver helps where there is no GPU
    if driver:
        yield steps.by_hand(
            "load-nvidia-module",
            "Load the kernel module of the NVIDIA driver",
            why="The driver's files are installed and its module is not in the running kernel.",
            layer=Layer.DRIVER,
            cost=steps.SMALL,
            effect=effects.driver_becomes(driver.library or driver.release, driver.cuda),
            bash=("sudo modprobe nvidia",),
            admin=True,
        )
    needed = _minimum(cuda or "12.6", facts) or "580.65.06"
    if step := _upgrade(needed, cuda, facts):
        yield replace(step, name="install-driver")


def _too_old(
    cuda: str, driver: Driver | Unknown, message: Symptom | None, facts: Facts
) -> Iterator[Finding]:
    release = (driver.release or driver.kernel_module) if isinstance(driver, Driver) else None
    needed = _minimum(cuda, facts)
    if needed is None:
        raise CannotTell(f"which driver CUDA {cuda} needs is not in the tables")
    if release is None and message is None:
        raise CannotTell("the release of the driver is not known")
    if release and drivers.compare(release, needed) >= 0:
        return
    tried = isinstance(facts.runtime, Runtime) or message is not None
    newer = driver.cuda if isinstance(driver, Driver) else None
    if not tried and newer and drivers.compare(newer, cuda) >= 0:
        # Only a compatibility library makes an old driver report a CUDA of a newer major.
        raise CannotTell(f"driver {release} reports CUDA {newer}, so cuda-compat may bridge them")
    found = f"The NVIDIA driver {release}" if release else "The NVIDIA driver"
    cpu = facts.expectation.accelerator == "cpu"
    told = isinstance(facts.torch, Build) and gpu.cuda(facts.torch) == cuda
    need = f"CUDA {cuda}" if told else f"the CUDA ({cuda} or newer)"
    evidence = [Evidence("torch.cuda", cuda, "torch/version.py")] if told else []
    if isinstance(driver, Driver) and release:
        evidence.append(Evidence("driver.release", release, driver.source or "the driver"))
    if message:
        found += f" (CUDA {message.values['cuda']})" if message.values.get("cuda") else ""
        evidence.append(Evidence("symptoms", message.text, message.source))
    yield Finding(
        "driver-too-old",
        "note" if cpu else "error",
        f"{found} is too old for {need} of this torch, which needs {needed} or newer.",
        tuple(evidence),
        () if cpu else tuple(_cures(cuda, needed, release, facts)),
        confidence="certain" if tried else "likely",
    )


def _cures(cuda: str, needed: str, release: str | None, facts: Facts) -> Iterator[Step]:
    if release:
        asked = replace(gpu.filled(facts), driver=Driver(release))
        now = facts.torch.public if isinstance(facts.torch, Build) else None
        choice = choose.choose(asked, accelerator="cuda", release=now) if now else None
        choice = choice or choose.choose(asked, accelerator="cuda")
        if choice:
            yield steps.change_build(facts, choice, why=f"This build runs on driver {release}.")
    step = _upgrade(needed, cuda, facts)
    if step and isinstance(facts.container, Container):
        step = replace(step, title=f"{step.title} (on the host)", commands=Commands())
    if step:
        yield step


def _upgrade(needed: str, cuda: str | None, facts: Facts) -> Step | None:
    """Return the step to a driver of *needed*, unless it has left a GPU of this machine behind."""
    if isinstance(facts.platform, Platform) and facts.platform.jetson:
        return None  # its driver comes with JetPack
    for card in map(gpu.with_capability, gpu.of_nvidia(facts.gpus)):
        last = drivers.last_driver_branch(card.capability) if card.capability else None
        if last and int(needed.partition(".")[0]) > last:
            return None
    wsl = isinstance(facts.platform, Platform) and facts.platform.wsl
    where = "in Windows, never inside WSL" if wsl else "once, for the whole machine"
    return steps.upgrade_driver(
        facts, needed, cuda, why=f"torch needs a driver and no toolkit; it is installed {where}."
    )


def _minimum(cuda: str, facts: Facts) -> str | None:
    known = gpu.driver_platform(facts.platform)
    key = known or next(iter(gpu.platform_keys(facts.platform)), "")
    return drivers.minimum_driver(cuda, key)
