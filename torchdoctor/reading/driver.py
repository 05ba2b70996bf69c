"""Read what the NVIDIA driver said, and which GPUs there are by its word or by the bus.

The driver is asked by NVML; nvidia-smi speaks for it where NVML cannot be loaded. Its silence
proves nothing: a driver that hangs is present and hung, and the GPUs are unknown. It is absent
(None) only when there is no library, no program, no kernel module and no device file of it.

Sources: nvml.h for numbers of errors, modes and fabric states; /proc/driver/nvidia/version of
both kernel modules; kfd_topology.c for gfx_target_version and location_id; PCI vendor numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from torchdoctor.facts import Driver, Gpu, Unknown
from torchdoctor.reading import nvidia_smi
from torchdoctor.reading.containers import container
from torchdoctor.reading.said import Said, Unreadable, said
from torchdoctor.reading.toolkits import cuda_release
from torchdoctor.tables import drivers
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.child import Run

PROC = "/proc/driver/nvidia/version"
VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
COMPUTE_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
FABRIC_DONE = 3
SMI_CODES = frozenset((4, 9, 10, 12, 13, 14, 15, 18))
"""Exit codes of nvidia-smi that are numbers of NVML errors."""

Gpus = tuple[Gpu, ...]


def read(
    driver_run: Run,
    smi_runs: Mapping[str, Run] | None = None,
    host_run: Run | None = None,
) -> dict[str, object]:
    """Return the facts ``driver`` and ``gpus``.

    *smi_runs* are the runs of nvidia-smi, None when there was none to run; *host_run* is the
    host probe, without which less can be told. Never raises.
    """
    host = _Host(host_run)
    runs = dict(smi_runs or {})
    try:
        if silence := _silence(driver_run, runs):
            return {"driver": _hung(driver_run, host, silence), "gpus": Unknown(silence)}
        driver, listed = _answer(driver_run, runs)
    except ValueError as error:
        return {"driver": Unknown(str(error)), "gpus": Unknown(str(error))}
    if driver is not None:
        return {"driver": _completed(driver, driver_run, host), "gpus": _gpus(listed, host)}
    traces = host.traces()
    if isinstance(traces, Unknown):
        return {"driver": traces, "gpus": _gpus((), host)}
    if not traces:
        return {"driver": None, "gpus": _gpus((), host)}
    present = Driver(None, source=PROC if host.kernel_module() else traces[0])
    if not (host.jetson() and "cuda_driver_version" in driver_run.data):  # it needs no NVML
        why = f"neither NVML nor nvidia-smi could be asked, but there is {', '.join(traces)}"
        present = replace(present, error=why)
    return {"driver": _completed(present, driver_run, host), "gpus": _gpus((), host)}


# ---- what the driver said ---------------------------------------------------------------------


def _silence(driver_run: Run, smi_runs: Mapping[str, Run]) -> str | None:
    """Return which question the driver left unanswered, None when it answered all."""
    for run in smi_runs.values():
        if run.outcome == "timeout":
            return f"nvidia-smi did not answer in {run.seconds:.0f} s"
    answered = {"nvml_done", "nvml_error"} & set(driver_run.data)
    if driver_run.outcome != "timeout" or answered:
        return None
    stage = driver_run.data.get("stage")
    if not isinstance(stage, str):
        raise Unreadable(f"the driver probe did not start in {driver_run.seconds:.0f} s")
    return f"the driver did not answer in {driver_run.seconds:.0f} s ({stage[:80]})"


def _hung(driver_run: Run, host: _Host, silence: str) -> Driver:
    release = _whole_release(driver_run.data.get("driver_version"))
    module = host.kernel_module()
    return Driver(
        release=release or module,
        source="nvidia-smi" if silence.startswith("nvidia-smi") else "nvml",
        kernel_module=module,
        library=_library(driver_run) or host.library(),
        error=silence,
        hung=True,
    )


def _answer(driver_run: Run, smi_runs: Mapping[str, Run]) -> tuple[Driver | None, Gpus]:
    """Return what NVML or nvidia-smi said; None when neither was there."""
    if driver_run.outcome == "not-started" or not isinstance(driver_run.data.get("stage"), str):
        if not smi_runs:
            raise Unreadable(driver_run.reason or "the driver probe said nothing")
        return _by_smi(smi_runs)
    answer = Said(driver_run.data, "driver")
    if answer.flag("smi_needed"):
        if smi_runs:
            return _by_smi(smi_runs)
        if "pynvml" in answer.part("errors").data:
            raise Unreadable("NVML is there, but pynvml and nvidia-smi are not")
        broken = _unloadable(answer.part("errors"))
        return (Driver(None, source="nvml", error=broken) if broken else None), ()
    if answer.text("library") is None and driver_run.outcome == "answered":
        return None, ()
    return _by_nvml(answer, driver_run)


def _unloadable(errors: Said) -> str | None:
    """Return why a library that is there could not be loaded, None when there is none."""
    told = (str(why)[:400] for name, why in errors.data.items() if "libnvidia-ml" in name)
    return next((why for why in told if "No such file" not in why), None)


def _by_nvml(answer: Said, run: Run) -> tuple[Driver, Gpus]:
    failure = answer.part("nvml_error")
    error, code = failure.line("text"), failure.number("code")
    gpus = tuple(_device(device) for device in answer.parts("devices"))
    lost = [d.part("errors").part("handle") for d in answer.parts("devices")]
    for one in lost:
        error, code = error or one.line("text"), code or one.number("code")
    if run.outcome == "failed" and error is None and not answer.flag("nvml_done"):
        how = run.signal or f"exit code {run.exit_code}"
        error = f"NVML ended the process ({how}) in {answer.line('stage')}"
    return (
        Driver(
            release=_whole_release(answer.line("driver_version")),
            cuda=cuda_release(answer.number("nvml_cuda_version")),
            source="nvml",
            error=error,
            code=code,
            fabric=_nvml_fabric(answer),
        ),
        tuple(gpu for gpu in gpus if gpu is not None),
    )


def _device(device: Said) -> Gpu | None:
    """Read one GPU; None when not even its handle could be had."""
    if "handle" in device.part("errors").data:
        return None
    capability, mig = device.data.get("capability"), device.data.get("mig")
    mode = device.number("compute_mode")
    return Gpu(
        name=device.line("name") or "",
        index=device.number("index"),
        capability=_pair(capability),
        memory=device.number("memory"),
        uuid=device.line("uuid"),
        bus=device.line("bus"),
        mig=bool(pair[0]) if (pair := _pair(mig)) else None,
        compute_mode=COMPUTE_MODES[mode] if mode is not None and 0 <= mode <= 3 else None,  # noqa: PLR2004
    )


def _pair(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 2 and all(type(one) is int for one in value):  # noqa: PLR2004
        return value[0], value[1]
    raise Unreadable("driver.devices: a pair of numbers is none")


def _nvml_fabric(answer: Said) -> str | None:
    """Return the fabric manager's state as the GPUs tell it; most have no fabric at all."""
    states = [d.part("fabric").number("state") for d in answer.parts("devices")]
    known = [state for state in states if state]
    if not known:
        return None
    return "running" if all(state == FABRIC_DONE for state in known) else "stopped"


def _by_smi(runs: Mapping[str, Run]) -> tuple[Driver | None, Gpus]:
    """Put together what several runs of nvidia-smi said; None when none could be started."""
    told = [_one_smi(run) for run in runs.values() if run.outcome != "not-started"]
    if not told:
        return None, ()
    drivers = [driver for driver, _ in told]
    readable = [driver for driver in drivers if not driver.garbage]
    first = next((d for d in readable if d.error), readable[0] if readable else drivers[0])
    return (
        replace(
            first,
            release=next((d.release for d in drivers if d.release), None),
            cuda=next((d.cuda for d in drivers if d.cuda), None),
            library=next((d.library for d in drivers if d.library), None),
            garbage=not readable,
        ),
        max((gpus for _, gpus in told), key=_richness),
    )


def _richness(gpus: Gpus) -> tuple[int, bool]:
    return len(gpus), any(gpu.uuid for gpu in gpus)


def _one_smi(run: Run) -> tuple[Driver, Gpus]:
    asked = next((word for word in run.command if word.startswith("--query-gpu=")), "")
    fields = asked.partition("=")[2].split(",") if asked else nvidia_smi.FIELDS
    driver, gpus = nvidia_smi.read(run.stdout.text, fields)
    if driver.garbage:
        from_stderr, _ = nvidia_smi.read(run.stderr.text, fields)
        driver = driver if from_stderr.garbage else from_stderr
    if driver.garbage and run.signal:
        driver = replace(driver, garbage=False, error=f"nvidia-smi ended with {run.signal}")
    elif driver.garbage and run.exit_code in SMI_CODES:
        error = f"nvidia-smi ended with exit code {run.exit_code}"
        driver = replace(driver, garbage=False, error=error, code=run.exit_code)
    return driver, gpus


def _completed(driver: Driver, driver_run: Run, host: _Host) -> Driver:
    """Add what the kernel, the disk and libcuda tell beside the driver's own words."""
    module = host.kernel_module()
    number = driver_run.data.get("cuda_driver_version")
    cuda = driver.cuda or cuda_release(number if type(number) is int else None)
    states = (host.fabric(), driver.fabric)
    taken = driver_run.data.get("cuda_library")
    # A library that was loaded counts, though its name tells no release, as on WSL.
    on_disk = None if driver_run.data.get("library") else host.library()
    if on_disk and driver.library and on_disk.startswith(f"{driver.library}."):
        driver = replace(driver, library=on_disk)  # nvidia-smi tells only two of its numbers
    return replace(
        driver,
        release=driver.release or module,
        cuda=cuda,
        kernel_module=module,
        library=_library(driver_run) or driver.library or on_disk,
        cuda_library=taken if isinstance(taken, str) and taken.startswith("/") else None,
        fabric="running" if "running" in states else next(filter(None, states), None),
    )


def _library(driver_run: Run) -> str | None:
    """Return the release in the name of the NVML library that was loaded."""
    path = driver_run.data.get("library")
    return _file_release(path) if isinstance(path, str) else None


def _file_release(path: str) -> str | None:
    # libcuda.so.1.1 of a Jetson carries no release.
    found = re.search(r"\.so\.([0-9]{3,4}(?:\.[0-9]{1,5}){1,3})$", path)
    return found[1] if found else None


def _whole_release(value: object) -> str | None:
    if isinstance(value, str) and re.fullmatch(drivers.RELEASE, value):
        return value
    return None


# ---- what the machine shows -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Host:
    """What the host probe saw that bears on GPUs; each answer alone may be unknown."""

    run: Run | None

    def _piece(self, *names: str) -> Said:
        if self.run is None:
            raise Unreadable("the machine itself was not looked at")
        return said(self.run, *names)

    def kernel_module(self) -> str | None:
        """Return the release of the loaded NVIDIA module, None when none tells."""
        try:
            piece = self._piece("kernel").part("kernel")
            module = _whole_release(piece.line("nvidia_module_version"))
            return proc_release(piece.text("nvidia_version") or "") or module
        except ValueError:
            return None

    def library(self) -> str | None:
        """Return the release of the driver's library on disk; toolkits' copies do not count."""
        try:
            files = self._piece("driver_files").part("driver_files").parts("libraries")
            real = [f.text("real") or "" for f in files if "/compat" not in (f.text("path") or "")]
        except ValueError:
            return None
        real.sort(key=lambda path: "libnvidia-ml" not in path)
        return next((r for path in real if (r := _file_release(path))), None)

    def traces(self) -> list[str] | Unknown:
        """Return what of a driver there is, nothing when there surely is none."""
        try:
            answer = self._piece("system", "kernel", "device_nodes", "driver_files")
            if answer.part("system").text("platform") == "darwin":
                return []
            kernel = answer.part("kernel")
            modules = {line.split(" ")[0] for line in kernel.texts("modules")}
            modules |= set(kernel.texts("built_in"))
            files = answer.part("driver_files")
            nodes = [node.text("path") or "" for node in answer.parts("device_nodes")]
            libraries = [f.text("path") or "" for f in files.parts("libraries")]
        except ValueError as error:
            return Unknown(str(error))
        found = sorted(f"the module {m}" for m in modules if m.startswith("nv"))
        found += [n for n in nodes if n.startswith(("/dev/nvidia", "/dev/nvmap", "/dev/nvhost"))]
        found += [path for path in libraries if "libnvidia-ml" in path or "nvml.dll" in path]
        found += files.texts("nvidia_smi")
        return found[:4] or ([PROC] if self.kernel_module() else [])

    def fabric(self) -> str | None:
        """Return the fabric manager's state where NVSwitches are seen, None elsewhere."""
        try:
            piece = self._piece("fabric", "container").part("fabric")
            if piece.texts("processes"):
                return "running"
            assert self.run is not None
            # A container sees the switches, but not the processes of its host.
            alone = container(self.run) is None
            looked = piece.data.get("processes") is not None
            return "stopped" if piece.texts("switches") and looked and alone else None
        except ValueError:
            return None

    def jetson(self) -> bool:
        """Tell whether this is a Jetson, whose driver comes with the system."""
        try:
            return self._piece("tegra").part("tegra").text("release") is not None
        except ValueError:
            return False

    def gpus(self) -> Gpus:
        """Return the GPUs on the bus and beside it; raises Unreadable when none can be told."""
        answer = self._piece("system", "pci", "kfd", "tegra", "kernel", "cpu")
        system = answer.part("system")
        if system.text("platform") == "darwin" and system.part("sysctl").number(
            "hw.optional.arm64"
        ):
            name = answer.part("cpu").part("sysctl").line("machdep.cpu.brand_string")
            return (Gpu(name or "", vendor="apple"),)
        if system.text("platform") != "linux":
            raise Unreadable("without a driver, GPUs can be told on Linux and Apple silicon only")
        nodes = [gpu for node in answer.parts("kfd") if (gpu := _kfd_gpu(node))]
        known = {gpu.bus for gpu in nodes}
        bus = [gpu for slot in answer.parts("pci") if (gpu := _pci_gpu(slot))]
        integrated = [Gpu("", vendor="nvidia")] if self.jetson() else []
        return (*nodes, *(gpu for gpu in bus if gpu.bus not in known), *integrated)


def _gpus(listed: Gpus, host: _Host) -> Gpus | Unknown:
    """Return what the driver listed, and what the bus shows beside it."""
    try:
        seen = host.gpus()
    except ValueError as error:
        return listed or Unknown(str(error))
    return (*listed, *(gpu for gpu in seen if not listed or gpu.vendor != "nvidia"))


def proc_release(text: str) -> str | None:
    """Return the release in the text of /proc/driver/nvidia/version, None when it has none."""
    line = next((one for one in text.splitlines() if one.startswith("NVRM version:")), "")
    found = re.search(rf"\s({drivers.RELEASE})(?:\s|$)", line[:400])
    return found[1] if found else None


def _pci_gpu(slot: Said) -> Gpu | None:
    kind, vendor = slot.text("class") or "", VENDORS.get(slot.text("vendor") or "")
    # AMD's accelerators without a display are "processing accelerators", as is much else.
    is_gpu = kind.startswith("0x03") or (kind.startswith("0x12") and vendor == "amd")
    return Gpu("", vendor=vendor, bus=slot.text("slot")) if vendor and is_gpu else None


def _kfd_gpu(node: Said) -> Gpu | None:
    """Read one node of AMD's compute driver, None when it is a processor."""
    values = _properties(node.text("properties") or "")
    version = values.get("gfx_target_version", 0)
    if version <= 0:
        return None
    domain, place = values.get("domain", 0), values.get("location_id", 0)
    banks = [_properties(text) for text in node.texts("banks")]
    memory = sum(b.get("size_in_bytes", 0) for b in banks if b.get("heap_type") in (1, 2))
    return Gpu(
        name="",
        vendor="amd",
        memory=memory or None,
        bus=f"{domain:04x}:{place >> 8 & 255:02x}:{place >> 3 & 31:02x}.{place & 7}",
        gfx=f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}",
    )


def _properties(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines()[:200])
    return {p[0]: int(p[1]) for p in pairs if len(p) == 2 and re.fullmatch("[0-9]{1,19}", p[1])}  # noqa: PLR2004
