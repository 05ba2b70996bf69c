"""The container, or WSL, has been given the GPUs that torch is to use.

How it shows: "Found no NVIDIA driver on your system" and no ``nvidia-smi`` inside a container,
while both work on the host; under WSL 1 there is no /dev/dxg at all.

Why: a container has no GPU unless it is started with them: ``--gpus all`` (docker, with the NVIDIA
container toolkit on the host), ``nvidia.com/gpu`` limits (Kubernetes), ``--nv`` (Singularity). The
driver is the host's and is mounted when the container starts; driver packages inside the image hide
it and then differ from the host's kernel module. WSL 1 has no GPU, WSL 2 has the one of Windows.

A CUDA build in a container that was not meant to have a GPU is healthy. The fix is in how the
container is started, never a driver inside it. Sources: NVIDIA Container Toolkit documentation,
Kubernetes "Schedule GPUs", Apptainer "GPU support", Microsoft's page on CUDA in WSL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import (
    Build,
    Container,
    DeviceNode,
    Driver,
    Expectation,
    Facts,
    Gpu,
    Platform,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Commands, Evidence, Finding, Layer, Severity, Step
from torchdoctor.tables import containers

FAMILY = "gpu"
FINDS = ("container-no-gpu", "driver-installed-in-container", "wsl1-no-gpu")

ANY = ("Start the container with its GPUs (docker: --gpus all, Singularity: --nv)", ())
CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
ENOUGH = frozenset({"all", "compute"})
NO_LIBRARY = 12
"""NVML_ERROR_LIBRARY_NOT_FOUND"""
_CARD = re.compile(r"/dev/nvidia\d+")
NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0")


def check(
    platform: Platform | Unknown,
    container: Container | Unknown | None,
    torch: Build | Unknown | None,
    driver: Driver | Unknown | None,
    gpus: tuple[Gpu, ...] | Unknown,
    device_nodes: tuple[DeviceNode, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
) -> Iterator[Finding]:
    """Look for a container or a WSL without a trace of the GPU that is wanted of it."""
    cuda = isinstance(torch, Build) and gpu.cuda(torch)
    asked = gpu.asked_for(symptoms)
    wanted = bool(asked) or gpu.expects_cuda(expectation)
    if expectation.accelerator == "cpu" or not (cuda or wanted):
        return
    seen = [Evidence("symptoms", asked.text, asked.source)] if asked else []
    wsl1 = isinstance(platform, Platform) and platform.wsl == 1
    if isinstance(platform, Platform) and wsl1:
        yield _wsl1(platform, seen, wanted=wanted)
    if isinstance(container, Container) and not wsl1:
        if isinstance(driver, Unknown):
            raise CannotTell(f"driver: {driver.reason}")
        nodes = items_of(device_nodes)
        cards = [node for node in nodes if _CARD.fullmatch(node.path)]
        if isinstance(driver, Driver) and driver.kernel_module and driver.library:
            if driver.kernel_module != driver.library and not gpu.answers(driver):
                yield _hidden(driver, container)
        elif cards:
            if driver is None or (driver.code == NO_LIBRARY and not driver.library):
                yield _no_libraries(cards, container, variables, wanted=wanted)
        elif not any(n.path.startswith(("/dev/nvidia", "/dev/dxg")) for n in nodes) and (
            driver is None or gpu.not_loaded(driver)
        ):
            yield _without(container, gpus, variables, seen, wanted=wanted)


def _without(
    container: Container,
    gpus: tuple[Gpu, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    seen: list[Evidence],
    *,
    wanted: bool,
) -> Finding:
    """Return that nothing of a GPU was passed on."""
    on_host = gpu.of_nvidia(gpus)
    severity: Severity = "error" if wanted else ("warning" if on_host else "note")
    seen.append(Evidence("container.kind", container.kind, "the system"))
    seen.append(Evidence("device_nodes", "no /dev/nvidia*", "/dev"))
    setting = None if isinstance(variables, Unknown) else variables.get("NVIDIA_VISIBLE_DEVICES")
    if setting is not None:
        name = "variables.NVIDIA_VISIBLE_DEVICES"
        seen.append(Evidence(name, setting, "the environment"))
    host = f" although the host has {on_host[0].name}" if on_host else ""
    return Finding(
        "container-no-gpu",
        severity,
        f"This {container.kind} container was started without GPUs{host}: torch runs on the CPU.",
        tuple(seen),
        () if severity == "note" else (_start(container.kind),),
    )


def _no_libraries(
    cards: list[DeviceNode],
    container: Container,
    variables: Mapping[str, str] | Unknown,
    *,
    wanted: bool,
) -> Finding:
    """Return that the device files were passed on, and the driver's libraries were not."""
    given = None if isinstance(variables, Unknown) else variables.get(CAPABILITIES)
    short = given is not None and not ENOUGH & set(given.split(","))
    why = f" ({CAPABILITIES}={given} asks for no compute)" if short else ""
    seen = [Evidence("device_nodes", cards[0].path, "/dev")]
    seen.append(Evidence("driver", "no libcuda, no libnvidia-ml", "the container"))
    if given is not None:
        seen.append(Evidence(f"variables.{CAPABILITIES}", given, "the environment"))
    step = _start(container.kind)
    if short:
        option = f"-e {CAPABILITIES}=compute,utility"
        step = replace(
            step,
            title=f"Start the container with {option}, or take that variable out of its image",
            commands=Commands(bash=(f"docker run --gpus all {option} IMAGE",))
            if container.kind == "docker"
            else Commands(),
        )
    return Finding(
        "container-no-gpu",
        "error" if wanted else "warning",
        f"This {container.kind} container was given {cards[0].path} and not the libraries of the"
        f" driver that use it{why}.",
        tuple(seen),
        (step,),
    )


def _start(kind: str) -> Step:
    option = containers.option(kind, "gpus")
    title, bash = containers.start(kind, option) if option else ANY
    return steps.restart_container(
        title,
        why="The driver and the device files of the host are passed on when a container starts.",
        effect=_given_gpus,
        bash=bash,
        name="start-container-with-gpus",
    )


def _given_gpus(facts: Facts) -> Facts:
    """Return *facts* with the devices and the driver of the host; what is known of them stays."""
    driver = facts.driver
    if isinstance(driver, Driver):
        release = driver.release or driver.kernel_module
        facts = effects.driver_becomes(release, driver.cuda)(facts)
    else:
        facts = effects.change(driver=Driver(None, source="the host"))(facts)
    nodes = {node.path: node for node in items_of(facts.device_nodes)}
    given = {path: DeviceNode(path, allowed=True) for path in NODES}
    return effects.change(
        device_nodes=tuple((nodes | given).values()),
        gpus=facts.gpus if gpu.of_nvidia(facts.gpus) else effects.TO_TRY,
    )(facts)


def _of_the_host(facts: Facts) -> Facts:
    """Return *facts* with the libraries of the driver that the host has by then."""
    driver = facts.driver
    if not isinstance(driver, Driver):
        return effects.untried(facts)
    return effects.driver_becomes(driver.kernel_module, driver.cuda)(facts)


def _hidden(driver: Driver, container: Container) -> Finding:
    return Finding(
        "driver-installed-in-container",
        "error",
        f"The NVIDIA library in this {container.kind} container is {driver.library} and the host's"
        f" kernel module is {driver.kernel_module}: driver packages in the image hide the host's.",
        (
            Evidence("driver.library", driver.library or "", "libnvidia-ml in the container"),
            Evidence(
                "driver.kernel_module", driver.kernel_module or "", "/proc/driver/nvidia/version"
            ),
        ),
        (
            replace(
                steps.restart_container(
                    "Take the driver packages out of the image, then start the container again",
                    why="The container toolkit mounts the host's own driver files instead.",
                    effect=_of_the_host,
                    bash=("apt-get purge -y 'libnvidia-*' 'nvidia-driver-*' 'nvidia-utils-*'",),
                    name="purge-driver-in-container",
                ),
                deletes=True,
            ),
        ),
        confidence="likely",
    )


def _wsl1(platform: Platform, seen: list[Evidence], *, wanted: bool) -> Finding:
    name = platform.distribution or "Ubuntu"
    step = steps.by_hand(
        "convert-to-wsl2",
        "Convert this distribution to WSL 2, from Windows",
        why="Only WSL 2 passes the GPU of Windows on; no driver is installed inside it.",
        layer=Layer.RUNTIME,
        cost=steps.BUILD,
        effect=effects.then(
            effects.altered("platform", wsl=2), effects.change(driver=effects.TO_TRY)
        ),
    )
    convert = (f"wsl --set-version {name.capitalize()} 2",)
    return Finding(
        "wsl1-no-gpu",
        "error" if wanted else "note",
        "This distribution runs under WSL 1, which has no GPU, so torch runs on the CPU.",
        (*seen, Evidence("platform.wsl", "1", f"kernel {platform.kernel or ''}".strip())),
        (replace(step, commands=Commands(powershell=convert, cmd=convert)),) if wanted else (),
    )
