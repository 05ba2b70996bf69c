"""The kernel module nvidia_uvm is there and in a good state.

How it shows: "CUDA unknown error - this may be due to an incorrectly set up environment, e.g.
changing env variable CUDA_VISIBLE_DEVICES after program start" (error 999), while ``nvidia-smi``
works; often after the machine was suspended and woken.

Why: CUDA, unlike nvidia-smi, needs /dev/nvidia-uvm. After a suspend without saved video memory the
module nvidia_uvm is left in a bad state; when its device file was never made, CUDA cannot make it
without rights. The message blames a variable that has nothing to do with it.

The fix is to load the module again, or to make the device file with nvidia-modprobe. Sources:
https://github.com/pytorch/pytorch/issues/88639; NVIDIA driver README, power management.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import (
    Container,
    DeviceNode,
    Driver,
    Expectation,
    Facts,
    Kernel,
    Platform,
    Runtime,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import Evidence, Finding, Layer, Step

FAMILY = "gpu"
FINDS = ("nvidia-uvm-stale",)
AFTER = ("nvml", "gpu-permission", "fabric-manager")

NODE = "/dev/nvidia-uvm"


def check(
    platform: Platform,
    symptoms: tuple[Symptom, ...],
    driver: Driver | Unknown | None,
    runtime: Runtime | Unknown,
    kernel: Kernel | Unknown,
    device_nodes: tuple[DeviceNode, ...] | Unknown,
    container: Container | Unknown | None,
    expectation: Expectation,
) -> Iterator[Finding]:
    """Look for the unknown error of CUDA while the driver answers."""
    said = gpu.symptom(symptoms, "cuda-unknown-error", "cuda-call-failed-in-os")
    if said is None or gpu.available(runtime):
        return
    if platform.system != "linux" or platform.wsl or isinstance(container, Container):
        return
    if driver is None or (isinstance(driver, Driver) and not gpu.answers(driver)):
        return
    nodes = () if isinstance(device_nodes, Unknown) else tuple(n.path for n in device_nodes)
    missing = bool(nodes) and NODE not in nodes
    loaded = isinstance(kernel, Kernel) and "nvidia_uvm" in kernel.modules
    state = "is missing" if missing else "is there and does not work"
    seen = [Evidence("symptoms", said.text, said.source)]
    if nodes:
        seen.append(Evidence("device_nodes", f"{NODE} {state}", "/dev"))
    if loaded:
        seen.append(Evidence("kernel.modules", "nvidia_uvm", "/proc/modules"))
    cpu = expectation.accelerator == "cpu"
    yield Finding(
        "nvidia-uvm-stale",
        "note" if cpu else "error",
        f"The driver answers, but CUDA fails with an unknown error (999): {NODE}, which only CUDA"
        f" needs, {state}.",
        tuple(seen),
        () if cpu else (_make() if missing else _reload(), _reboot()),
        confidence="certain" if missing else "likely",
    )


def _reload() -> Step:
    return steps.by_hand(
        "reload-nvidia-uvm",
        "Load the kernel module nvidia_uvm again, with no program on the GPU",
        why="A fresh module has forgotten the state from before the suspend.",
        layer=Layer.DRIVER,
        cost=-steps.SMALL,  # cheaper than the reboot, which it spares
        effect=effects.untried,
        bash=("sudo rmmod nvidia_uvm", "sudo modprobe nvidia_uvm"),
        admin=True,
    )


def _made(facts: Facts) -> Facts:
    """Return *facts* with the device file beside those that are there by then."""
    others = (node for node in items_of(facts.device_nodes) if node.path != NODE)
    return effects.change(device_nodes=(*others, DeviceNode(NODE, allowed=True)))(facts)


def _make() -> Step:
    return steps.by_hand(
        "make-nvidia-uvm",
        f"Load nvidia_uvm and make {NODE}",
        why="CUDA may not make the device file without admin rights.",
        layer=Layer.DRIVER,
        cost=-steps.SMALL,
        effect=_made,
        bash=("sudo nvidia-modprobe -u -c=0",),
        admin=True,
    )


def _reboot() -> Step:
    return steps.reboot(why="The modules are loaded anew when the machine starts.")
