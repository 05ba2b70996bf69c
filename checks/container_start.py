"""A container with GPUs starts: what docker and the NVIDIA Container Toolkit say when it does not.

How it shows: ``docker run --gpus all`` ends with "could not select device driver "" with
capabilities: [[gpu]]", with "nvidia-container-cli: requirement error: unsatisfied condition:
cuda>=12.8", or with another line of ``nvidia-container-cli`` although ``nvidia-smi`` works on the
host.

Why: docker needs the toolkit to pass a GPU on. The toolkit then compares the CUDA that the image
names with the one that the host's driver supports in full, stricter than torch itself, which runs
on any driver of its CUDA major. A release of the toolkit itself was faulty: 1.17.0 ("unsupported
IMEX channel value").

The fix is on the host, never in the image: install or upgrade the toolkit, or the driver.
Sources: https://github.com/NVIDIA/nvidia-docker/issues/1352,
https://github.com/pytorch/test-infra/pull/5852, https://github.com/SyneRBI/PETRIC2/issues/27
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import Driver, Facts, Symptom, Unknown
from torchdoctor.model import Evidence, Finding, Layer, Step
from torchdoctor.tables import drivers

FAMILY = "gpu"
FINDS = ("container-no-gpu", "container-toolkit-broken", "driver-too-old", "driver-missing")

FAULTY = (("unsupported IMEX channel value", "1.17.0", "1.17.1"),)
"""What a faulty release of the toolkit says, which one it is, and the first that does not."""
NO_DRIVER = ("driver not loaded", "libnvidia-ml.so.1", "nvidia-smi has failed")


def check(
    symptoms: tuple[Symptom, ...], driver: Driver | Unknown | None, facts: Facts
) -> Iterator[Finding]:
    """Read what docker and the toolkit said."""
    if said := gpu.symptom(symptoms, "container-runtime-unknown"):
        yield _finding(
            "container-no-gpu",
            "docker knows no way to pass a GPU on: the NVIDIA Container Toolkit is not installed "
            "on the host, or docker was not restarted after it.",
            said,
            _install("Install the NVIDIA Container Toolkit on the host, then restart docker"),
        )
    if said := gpu.symptom(symptoms, "container-needs-newer-driver"):
        yield from _refused(said, driver, facts)
    if said := gpu.symptom(symptoms, "container-toolkit-failed"):
        yield from _failed(said)


def _failed(said: Symptom) -> Iterator[Finding]:
    reason = said.values.get("reason", "")
    for text, release, mended in FAULTY:
        if text in reason:
            yield _finding(
                "container-toolkit-broken",
                f"The NVIDIA Container Toolkit {release} is faulty: {reason.strip()[:150]}",
                said,
                _install(f"Upgrade the NVIDIA Container Toolkit on the host to {mended} or newer"),
            )
            return
    if any(text in reason.lower() for text in NO_DRIVER):
        yield _finding(
            "driver-missing",
            "The host has no NVIDIA driver that is loaded, so no container gets its GPUs.",
            said,
        )


def _refused(said: Symptom, driver: Driver | Unknown | None, facts: Facts) -> Iterator[Finding]:
    needs = said.values["needs"]
    has = driver.cuda if isinstance(driver, Driver) else None
    if has and drivers.compare(has, needs) >= 0:
        return
    cures: list[Step] = []
    if has and has.partition(".")[0] == needs.partition(".")[0]:
        cures.append(
            steps.restart_container(
                "Start the container with NVIDIA_DISABLE_REQUIRE=1",
                why=f"A driver of CUDA {has} runs the builds of torch of its whole major.",
                effect=effects.settled("container-needs-newer-driver"),
                bash=("docker run --gpus all -e NVIDIA_DISABLE_REQUIRE=1 IMAGE",),
                name="start-container-without-requirement",
            )
        )
    key = next(iter(gpu.platform_keys(facts.platform)), "linux_x86_64")
    if release := drivers.full_driver(needs, key) or drivers.minimum_driver(needs, key):
        why = "The driver of the host decides, not what is in the image."
        cures.append(steps.upgrade_driver(facts, release, needs, why=why))
    yield _finding(
        "driver-too-old",
        f"The image asks for a driver that supports CUDA {needs}, and the host's driver "
        f"{f'supports {has}' if has else 'is older'}, so the container does not start.",
        said,
        *cures,
    )


def _finding(name: str, summary: str, said: Symptom, *cures: Step) -> Finding:
    return Finding(
        name, "error", summary, (Evidence("symptoms", said.text, said.source),), cures, "likely"
    )


def _install(title: str) -> Step:
    return steps.by_hand(
        "install-container-toolkit",
        title,
        why="docker needs it to pass the GPU and the driver on.",
        layer=Layer.RUNTIME,
        cost=steps.BUILD,
        effect=effects.settled("container-runtime-unknown", "container-toolkit-failed"),
        bash=(
            "sudo apt-get update",
            "sudo apt-get install -y nvidia-container-toolkit",
            "sudo nvidia-ctk runtime configure --runtime=docker",
            "sudo systemctl restart docker",
        ),
        admin=True,
    )
