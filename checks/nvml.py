"""The NVIDIA kernel module, its library and the GPUs are still on speaking terms.

How it shows: "Failed to initialize NVML: Driver/library version mismatch" (error 18); inside a
container that worked before, "Failed to initialize NVML: Unknown Error"; "GPU is lost" (error 15).

Why: an update (often unattended) put new driver files on the disk while the old kernel module is
still loaded; nothing is wrong with torch, and installing a driver again does not help. A container
loses its GPUs when systemd on the host reloads and rebuilds the device rules. A GPU that fell off
the bus is a hardware, power or firmware matter when it comes back after each reboot.

The fix is a reboot, or a reload of the modules when nothing uses the GPU; a new start of the
container; ``apt-mark hold`` keeps the driver from being updated again behind a running job.
Sources: NVML API reference, return codes; https://github.com/NVIDIA/nvidia-container-toolkit/issues/48
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import (
    Build,
    Container,
    Driver,
    Expectation,
    Facts,
    Platform,
    Runtime,
    Symptom,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Severity, Step

FAMILY = "gpu"
FINDS = ("nvml-mismatch", "container-gpu-detached", "gpu-fell-off-bus")

MISMATCH = 18
"""NVML's number for a library and a driver of two releases."""


def check(
    platform: Platform | Unknown,
    driver: Driver | Unknown | None,
    container: Container | Unknown | None,
    torch: Build | Unknown | None,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Read the error that NVML gave, and compare module and library."""
    if driver is None:
        return
    said = gpu.symptom(symptoms, "nvml-version-mismatch", "nvml-not-initialized")
    if isinstance(driver, Unknown):
        if said is None:
            raise CannotTell(f"driver: {driver.reason}")
        driver = Driver(None, source="a message")
    text = driver.error or ""
    reason = (said.values.get("reason") or said.text) if said else ""
    inside = isinstance(container, Container | Unknown) and bool(
        isinstance(container, Container) or said
    )
    severity = _severity(torch, runtime, expectation)
    seen = [Evidence("driver.error", text, driver.source or "NVML")] if text else []
    if said:
        seen.append(Evidence("symptoms", said.text, said.source))
    if _mismatch(driver, platform) or (said and said.name == "nvml-version-mismatch"):
        module, library = driver.kernel_module, driver.library
        seen.append(
            Evidence("driver.kernel_module", module or "another", "/proc/driver/nvidia/version")
        )
        seen.append(Evidence("driver.library", library or "another", "libnvidia-ml on the disk"))
        files = "the driver's files of the host"
        here = isinstance(container, Container)
        cures = (_of_image(facts, files),) if here else _reloads()
        differ = f" ({module} and {library})" if module and library else ""
        yield Finding(
            "nvml-mismatch",
            severity,
            f"The loaded NVIDIA kernel module and the driver's library are of two releases{differ};"
            " they have to be of one.",
            tuple(seen),
            () if severity == "note" else cures,
            because_of=("driver-installed-in-container",),
        )
    elif gpu.off_bus(driver, reason):
        again = steps.reboot(why="A lost GPU is found again only at a start.")
        yield Finding(
            "gpu-fell-off-bus",
            severity,
            "A GPU no longer answers on the PCI bus; the driver calls it lost.",
            tuple(seen) or (Evidence("driver.code", str(driver.code), "NVML"),),
            () if severity == "note" else (again,),
        )
    elif inside and gpu.detached(driver, reason):
        yield Finding(
            "container-gpu-detached",
            severity,
            f"This container had GPUs and lost them: NVML says {text or reason or '999'}.",
            tuple(seen) or (Evidence("driver.code", str(driver.code), "NVML"),),
            () if severity == "note" else (_restart(facts, "its GPUs"),),
        )


def _severity(
    torch: Build | Unknown | None, runtime: Runtime | Unknown, expectation: Expectation
) -> Severity:
    if expectation.accelerator == "cpu":
        return "note"
    if gpu.available(runtime):
        return "warning"
    cuda = isinstance(torch, Build) and torch.cuda
    return "error" if cuda or gpu.expects_cuda(expectation) else "warning"


def _mismatch(driver: Driver, platform: Platform | Unknown) -> bool:
    if driver.code == MISMATCH or "version mismatch" in (driver.error or ""):
        return True
    answered = gpu.answers(driver) and driver.release is not None
    both = driver.kernel_module and driver.library
    wsl = isinstance(platform, Platform) and platform.wsl
    return bool(both and not answered and not wsl) and (driver.kernel_module != driver.library)


def _reloads() -> tuple[Step, ...]:
    again = steps.reboot(why="The kernel then loads the module that fits the library.")
    modules = "nvidia_drm nvidia_modeset nvidia_uvm nvidia"
    reload = steps.by_hand(
        "reload-nvidia-modules",
        "Reload the NVIDIA kernel modules, with no program on the GPU",
        why="Spares the reboot where no desktop and no job holds the GPU.",
        layer=Layer.DRIVER,
        cost=steps.COMPANION,
        effect=again.effect,
        bash=(f"sudo rmmod {modules}", "sudo modprobe nvidia_uvm"),
        admin=True,
    )
    return (again, reload)


def _of_image(facts: Facts, what: str) -> Step:
    """Return the step for a container: its image may bring libraries of a driver of its own."""
    return replace(
        _restart(facts, what),
        title="Take the driver's packages (libnvidia-*, nvidia-utils-*) out of the image, if it"
        " has any, and start the container anew; if it has none, reboot the host",
    )


def _restart(facts: Facts, what: str) -> Step:
    driver = facts.driver if isinstance(facts.driver, Driver) else None
    release = driver.kernel_module or driver.release if driver else None
    return steps.restart_container(
        "Stop this container and start it again",
        why=f"A container gets {what} when it starts.",
        effect=effects.driver_becomes(release, driver.cuda if driver else None),
    )
