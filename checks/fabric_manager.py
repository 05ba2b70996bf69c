"""The fabric manager runs on a machine with NVSwitch.

How it shows: "Error 802: system not yet initialized" (cudaErrorSystemNotReady) at the first use of
CUDA, while ``nvidia-smi`` lists all GPUs.

Why: HGX and DGX machines (A100, H100, H200, B200) join their GPUs by NVSwitch, and CUDA waits until
the service nvidia-fabricmanager has set the switches up. It has to be of exactly the driver's
release; after an update of the driver alone it refuses to start, and newer machines need nvlsm too.

In a container the service runs on the host. The fix is to install it in the driver's release and to
start it; ``journalctl -u nvidia-fabricmanager`` says why it stopped. Sources: NVIDIA's Fabric
Manager User Guide; https://github.com/pytorch/pytorch/issues/35710
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import (
    Container,
    Driver,
    Expectation,
    Facts,
    Platform,
    Runtime,
    Symptom,
    Unknown,
)
from torchdoctor.model import Evidence, Finding, Layer, Step

FAMILY = "gpu"
FINDS = ("fabric-manager-not-running",)


def check(
    driver: Driver | Unknown | None,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    platform: Platform | Unknown,
    container: Container | Unknown | None,
    expectation: Expectation,
) -> Iterator[Finding]:
    """Look for error 802 and for a fabric manager that is stopped."""
    said = gpu.symptom(symptoms, "cuda-system-not-ready")
    state = driver.fabric if isinstance(driver, Driver) else None
    if not said and (state != "stopped" or gpu.available(runtime)):
        return
    release = driver.release if isinstance(driver, Driver) else None
    seen = []
    if state:
        seen.append(Evidence("driver.fabric", state, "nvidia-fabricmanager"))
    if said:
        seen.append(Evidence("symptoms", said.text, said.source))
    what = {
        "stopped": "The fabric manager of this NVSwitch machine is not running",
        "running": f"The fabric manager runs and does not serve driver {release}",
    }.get(state or "", "The NVSwitch fabric of this machine is not set up")
    cpu = expectation.accelerator == "cpu"
    start = _start(release, platform, inside=isinstance(container, Container))
    yield Finding(
        "fabric-manager-not-running",
        "note" if cpu else "error",
        f"{what}, so CUDA does not start (error 802).",
        tuple(seen),
        () if cpu else (start,),
        confidence="certain" if said and state == "stopped" else "likely",
    )


def _start(release: str | None, platform: Platform | Unknown, *, inside: bool) -> Step:
    kinds = () if isinstance(platform, Unknown) else (platform.distribution, *platform.like)
    lines = ["sudo systemctl enable --now nvidia-fabricmanager"]
    if release and "ubuntu" in kinds:
        branch = release.partition(".")[0]
        lines.insert(0, f"sudo apt-get install -y nvidia-fabricmanager-{branch}={release}*")
    where = " on the host" if inside else ""
    named = f"driver {release}" if release else "the driver's own release"
    return steps.by_hand(
        "start-fabric-manager",
        f"Install the fabric manager of {named} and start it{where}",
        why="CUDA waits for it on every machine with NVSwitch.",
        layer=Layer.DRIVER,
        cost=steps.COMPANION,
        effect=_running,
        bash=() if inside else tuple(lines),
        admin=True,
    )


def _running(facts: Facts) -> Facts:
    """Return *facts* with the fabric manager of the driver that is there by then."""
    driver = facts.driver
    if isinstance(driver, Driver):
        return effects.change(driver=replace(driver, fabric="running"))(facts)
    return effects.untried(facts)
