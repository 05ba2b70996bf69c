"""This user may open the device files of the GPUs.

How it shows: no GPU is found although it is listed elsewhere; ``rocminfo`` says "Unable to open
/dev/kfd read-write: Permission denied"; NVML answers "Insufficient Permissions" (4).

Why: /dev/kfd and /dev/dri/renderD* belong to the groups render and video, of which a new user is no
member; NVIDIA's files are open to all unless the administrator narrowed them. In a container the
groups of the host do not count, and the device rules of its start do. Reading sysfs needs no such
right: rocm-smi may list the cards all the same. A cluster's scheduler closes the GPUs that other
jobs own: as long as one is open, that is as it should be. Files that are open to all and yet
refused are closed by the rules of the control group: those of a job that asked for no GPU.

The fix is membership in the file's group and a new login. Sources: ROCm's installation guide,
prerequisites; NVIDIA driver README, nvidia-modprobe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import (
    Build,
    Container,
    DeviceNode,
    Driver,
    Expectation,
    Facts,
    Runtime,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Effect, Evidence, Finding, Layer, Severity, Step
from torchdoctor.tables import containers

FAMILY = "gpu"
FINDS = ("gpu-device-permission",)

REFUSED = "gpu-device-refused"

NEEDS = {
    "cuda": (r"/dev/nvidia\d+", r"/dev/nvidiactl", r"/dev/nvidia-uvm", r"/dev/dxg"),
    "rocm": (r"/dev/kfd", r"/dev/dri/renderD\d+"),
    "xpu": (r"/dev/dri/renderD\d+",),
}


def check(
    device_nodes: tuple[DeviceNode, ...] | Unknown,
    torch: Build | Unknown | None,
    runtime: Runtime | Unknown,
    driver: Driver | Unknown | None,
    container: Container | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for a kind of device file that the build needs and of which none may be opened."""
    said = gpu.symptom(symptoms, REFUSED)
    if said and not gpu.available(runtime) and not _open_here(said, device_nodes):
        yield _told(said, container, expectation)
        return
    if isinstance(device_nodes, Unknown) or isinstance(torch, Unknown):
        raise CannotTell("the device files, or what torch was built for, are not known")
    kind = gpu.kind(torch) if torch else None
    if gpu.available(runtime) or kind not in NEEDS:
        return
    shut: list[DeviceNode] = []
    for pattern in NEEDS[kind]:
        alike = [node for node in device_nodes if re.fullmatch(pattern, node.path)]
        if alike and not any(node.allowed for node in alike):
            shut += alike
    if not shut:
        return
    severity: Severity = "note" if expectation.accelerator == "cpu" else "error"
    paths = ", ".join(node.path for node in shut)
    seen = [
        Evidence(f"device_nodes.{n.path}", f"{n.mode} {n.owner}".strip() or "closed", "/dev")
        for n in shut
    ]
    if isinstance(driver, Driver) and driver.error:
        seen.append(Evidence("driver.error", driver.error, driver.source or "NVML"))
    yield Finding(
        "gpu-device-permission",
        severity,
        f"This user may not open {paths}, which a {kind} build of torch needs.",
        tuple(seen),
        () if severity == "note" else (_open(shut, container, facts),),
    )


def _open_here(said: Symptom, nodes: tuple[DeviceNode, ...] | Unknown) -> bool:
    """Tell whether the file that *said* names may be opened now."""
    known = items_of(nodes)
    return any(node.path == said.values.get("file") and node.allowed for node in known)


def _told(
    said: Symptom, container: Container | Unknown | None, expectation: Expectation
) -> Finding:
    file = said.values.get("file", "")
    severity: Severity = "note" if expectation.accelerator == "cpu" else "error"
    return Finding(
        "gpu-device-permission",
        severity,
        f"This user may not open {file}, so no program of theirs can use the GPU.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        () if severity == "note" else (_let_in(file, container),),
    )


def _let_in(file: str, container: Container | Unknown | None) -> Step:
    effect = effects.settled(REFUSED)
    amd = file.startswith(("/dev/kfd", "/dev/dri"))
    if isinstance(container, Container):
        group = "--group-add $(getent group render | cut -d: -f3)"
        devices = "--device /dev/kfd --device /dev/dri" if amd else f"--device {file}"
        return steps.restart_container(
            f"Start the container with {devices}" + (f" and {group}" if amd else ""),
            why="A container opens only the devices, and has only the groups, of its start; the"
            " host's group has to be given by its number.",
            effect=effect,
            bash=(f"docker run -it --rm {devices} --group-add video {group} IMAGE",) if amd else (),
        )
    return steps.by_hand(
        "join-gpu-groups" if amd else "open-gpu-devices",
        "Join the groups render and video, then log out and in again"
        if amd
        else f"Have {file} opened to this user (ls -l shows its group and mode)",
        why="The device files are open to members of their group.",
        layer=Layer.DRIVER,
        cost=steps.SMALL,
        effect=effect,
        bash=('sudo usermod -aG render,video "$USER"',) if amd else (f"ls -l {file}",),
        admin=amd,
    )


def _open(shut: list[DeviceNode], container: Container | Unknown | None, facts: Facts) -> Step:
    paths = {node.path for node in shut}
    effect = effects.turned(
        "device_nodes",
        lambda now: tuple(replace(n, allowed=True) if n.path in paths else n for n in now),
    )
    if _by_rules(shut) and (again := _with_gpus(container, facts, effect)):
        return again
    groups = sorted({_group(node) for node in shut} - {"root", ""})
    if isinstance(container, Container):
        devices = " ".join(f"--device {node.path}" for node in shut)
        return steps.restart_container(
            f"Start the container with {devices}"
            + "".join(f" --group-add {name}" for name in groups),
            why="A container opens only the devices, and has only the groups, of its start.",
            effect=effect,
        )
    if groups:
        return steps.by_hand(
            "join-gpu-groups",
            f"Join the group {' and '.join(groups)}, then log out and in again",
            why="The device files are open to members of it.",
            layer=Layer.DRIVER,
            cost=steps.SMALL,
            effect=effect,
            bash=(f'sudo usermod -aG {",".join(groups)} "$USER"',),
            admin=True,
        )
    return steps.by_hand(
        "open-gpu-devices",
        "Open the device files of the GPUs to all users, as the driver does by default",
        why="They belong to root alone, and no group can be joined.",
        layer=Layer.DRIVER,
        cost=steps.SMALL,
        effect=effect,
        bash=(f"sudo chmod a+rw {' '.join(node.path for node in shut)}",),
        admin=True,
    )


def _by_rules(shut: list[DeviceNode]) -> bool:
    """Tell whether NVIDIA's files are open to all and yet refused: by rules of the group."""
    return all(n.mode.endswith("6") and n.path.startswith("/dev/nvidia") for n in shut)


def _with_gpus(container: Container | Unknown | None, facts: Facts, effect: Effect) -> Step | None:
    """Return the new start with GPUs of the job or the container that the rules are of."""
    kind = container.kind if isinstance(container, Container) else None
    if kind is None and not isinstance(facts.variables, Unknown):
        kind = containers.scheduler(facts.variables)
    option = containers.option(kind, "gpus") if kind else None
    if kind is None or option is None:
        return None
    title, bash = containers.start(kind, option)
    step = steps.restart_container(
        title,
        why="Its control group opens only the devices that it asked for.",
        effect=effect,
        bash=bash,
        name="ask-for-gpus",
    )
    return step if kind != "slurm" else replace(step, needs=())


def _group(node: DeviceNode) -> str:
    """Return the group that may open *node*; the usual one where its owner is not known."""
    if ":" in node.owner:
        return node.owner.partition(":")[2]
    return "render" if node.path.startswith(("/dev/kfd", "/dev/dri")) else ""
