"""The listing of ``python -m torch.utils.collect_env``, in each of its layouts.

Before 1.6 it said Yes and No; since 2.15 it names ROCm SDK and HIP apart; vLLM's own copy pads the
keys and adds sections. Every line is read by itself, so that the order does not matter and any
part may be missing. "Could not collect" and "N/A" are what they say, with two exceptions: a torch
that was imported and has no CUDA prints its CUDA as "Could not collect" or "None", and where torch
could not be imported, its version is "N/A".

Sources: torch/utils/collect_env.py of torch 1.0 to 2.15, collect_env.py of vLLM.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from torchdoctor.facts import Compiler, Device, Gpu, Toolkit
from torchdoctor.reading.pasted import gpus, packages, platforms, python
from torchdoctor.reading.pasted.conda import row as conda_row
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import LISTED, PRINTED, TOLD, VERSION, Package, Said, normal

LAYOUT = "collect_env"

_KEY = re.compile(
    r"\s{0,12}(?:[-*] )?(PyTorch version|Is debug build|CUDA used to build PyTorch|"
    r"ROC[Mm](?: SDK)? used to build PyTorch|HIP used to build PyTorch|XPU used to build PyTorch|"
    r"OS|GCC version|"
    r"Libc version|Python version|Python platform|Is CUDA available|Is XPU available|"
    r"CUDA runtime version|GPU models and configuration|Nvidia driver version|cuDNN version|"
    r"HIP runtime version|ROCM Version|vLLM Version|Model name|Flags|CPU\(s\)|"
    r"Name)\s{0,32}[:=]\s{0,40}(.{0,6000})$"
)
_INLINE = re.compile(r"Collecting environment information\.{3}\s+(?=PyTorch version)")
_NONE = {"", "N/A", "None", "Could not collect", "No CUDA", "Not available"}
_PACKAGE = re.compile(r"\s{0,12}\[(pip3?|uv|conda)\]\s{1,8}(\S.{0,300})$")
_PINNED = re.compile(rf"([\w.-]{{1,100}})==({VERSION})(?:\s.*)?$")
_OLD_PIN = re.compile(rf"([\w.-]{{1,100}}) \(({VERSION})(?:, [^)]*)?\)$")
_GPU = re.compile(r"\s{0,8}GPU ?(\d{1,3}): (\S.{1,200})$")
_MIG = re.compile(r"\s{1,12}MIG \d\w*g?\.\d+gb\b")
_DRIVER = re.compile(r"([0-9]{2,4}(?:\.[0-9]{1,5}){1,3})(?:\s|$)")
_RUNTIME = re.compile(r"([0-9]{1,2}\.[0-9]{1,2})\.[0-9]{1,4}\s*$")
_GCC = re.compile(r"(?:^|\) |^GCC )(\d{1,2}\.\d{1,2}\.\d{1,2})(?=\s|$)")
_XPU = re.compile(r"_XpuDeviceProperties\(name='([^']{1,100})'")
ENDS_FLAGS = re.compile(
    r"\s*(?:$|Virtualization|Hypervisor|L1d|Caches|NUMA|Vulnerabilit|Vendor|Versions of relevant|"
    r"={10,}|\[)"
)
_OF_THE_LISTING = ("Is debug build", "CUDA used to build PyTorch", "Is CUDA available")
"""What a person who writes a report by hand does not write."""
FEWEST_FLAGS = 30
_WITH_TORCH = re.compile(r"(?i)(?:py)?torch|triton|nvidia[-_]|libtorch")
"""Rows that are torch, or come with one."""


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield what the lines of such a listing in *lines* say."""
    seen: dict[str, str] = {}
    for place, line in enumerate(lines):
        if line.kind != "output":
            continue
        text = _INLINE.sub("", line.text)[:8000]
        if tagged := _PACKAGE.match(text):
            yield from _package(tagged[1], tagged[2].strip(), line.number)
        elif keyed := _KEY.match(text):
            key, value = keyed[1], keyed[2].strip()
            if key in ("Model name", "Flags", "CPU(s)", "Name"):
                yield from _processor(key, value, lines, place)
                continue
            seen.setdefault(key, value)
            reader = _READERS.get(key)
            if reader is not None:
                yield from reader(value, line.number)
        elif gpu := _GPU.match(text):
            below = lines[place + 1].text if place + 1 < len(lines) else ""
            yield from _gpu(gpu[2], int(gpu[1]), line.number, mig=bool(_MIG.match(below)))
        elif xpu := _XPU.search(text):
            listed = Gpu(xpu[1], vendor="intel")
            yield Said("gpu", listed, LAYOUT, PRINTED, line.number)
    yield from _together(seen)
    yield from _absent(seen, lines)


def _together(seen: dict[str, str]) -> Iterator[Said]:
    """Yield what only several lines together tell."""
    version = seen.get("PyTorch version", "")
    imported = bool(re.match(VERSION, version))
    if imported and any(key in seen for key in _OF_THE_LISTING):
        yield Said("trial.imported", version.split(" ")[0], LAYOUT)
    if version == "N/A" and any(seen.get(key) == "N/A" for key in _OF_THE_LISTING):
        yield Said("trial.failed", True, LAYOUT)  # noqa: FBT003
    # A build for AMD has N/A there; one for Intel has a line of its own and a label.
    cuda = seen.get("CUDA used to build PyTorch")
    others = [seen.get(f"{name} used to build PyTorch", "N/A") for name in ("ROCM", "HIP", "XPU")]
    if imported and cuda in ("Could not collect", "None") and set(others) <= _NONE:
        yield Said("torch.cuda", None, LAYOUT)
        yield Said("torch.no_accelerator", True, LAYOUT)  # noqa: FBT003


def _absent(seen: dict[str, str], lines: Sequence[Line]) -> Iterator[Said]:
    """Tell that torch is not installed: it could not be imported, and pip's list has none.

    What comes with torch tells against it: then the list was cut, or an upgrade stopped half-way.
    """
    if seen.get("PyTorch version") != "N/A":
        return
    tagged = (_PACKAGE.match(line.text[:8000]) for line in lines)
    rows = [(found[1], found[2].strip()) for found in tagged if found]
    of_pip = [text for tag, text in rows if tag != "conda" and text != "Could not collect"]
    if of_pip and not any(_WITH_TORCH.match(text) for _, text in rows):
        yield Said("torch.absent", True, LAYOUT)  # noqa: FBT003


def _torch(value: str, number: int) -> Iterator[Said]:
    if found := re.match(rf"({VERSION})(?:\s|$)", value):
        yield Said("torch.version", found[1], LAYOUT, PRINTED, number)
    if vision := re.search(rf"\(torchvision: ({VERSION})\)", value):
        yield Said("torchvision.version", vision[1], LAYOUT, PRINTED, number)


def _cuda(value: str, number: int) -> Iterator[Said]:
    if re.fullmatch(r"\d{1,2}\.\d{1,2}(?:\.\d{1,4})?", value):
        yield Said("torch.cuda", ".".join(value.split(".")[:2]), LAYOUT, PRINTED, number)


def _hip(value: str, number: int) -> Iterator[Said]:
    if re.match(r"\d{1,2}\.\d", value):
        yield Said("torch.hip", value.split(" ", maxsplit=1)[0], LAYOUT, PRINTED, number)


def _rocm(value: str, number: int) -> Iterator[Said]:
    if re.match(r"\d{1,2}\.\d", value):
        yield Said("torch.rocm", value.split(" ", maxsplit=1)[0], LAYOUT, PRINTED, number)


def _xpu(value: str, number: int) -> Iterator[Said]:
    if re.match(r"\d{4,10}\b", value):
        yield Said("torch.xpu", value.split(" ", maxsplit=1)[0], LAYOUT, PRINTED, number)


def _os(value: str, number: int) -> Iterator[Said]:
    if value not in _NONE:
        yield from platforms.named(value, LAYOUT, PRINTED, number)


def _libc(value: str, number: int) -> Iterator[Said]:
    if found := re.match(r"(glibc|musl)-(\d{1,2}\.\d{1,3})", value):
        yield Said("platform.libc", found[1], LAYOUT, PRINTED, number)
        yield Said("platform.libc_of_3_8", found[2], LAYOUT, PRINTED, number)


def _python(value: str, number: int) -> Iterator[Said]:
    found = re.match(rf"(?:Python )?({python.NUMBER})(?![\w.])", value)
    if found is None:
        return
    yield Said("interpreter.version", found[1].rstrip("+"), LAYOUT, PRINTED, number)
    if bits := re.search(r"\((\d\d)-bit runtime\)", value):
        yield Said("interpreter.bits", int(bits[1]), LAYOUT, PRINTED, number)


def _platform(value: str, number: int) -> Iterator[Said]:
    yield from platforms.platform_string(value, LAYOUT, PRINTED, number)


def _available(value: str, number: int) -> Iterator[Said]:
    if value in ("True", "False", "Yes", "No"):
        yield Said("runtime.available", value in ("True", "Yes"), LAYOUT, PRINTED, number)


def _xpu_available(value: str, number: int) -> Iterator[Said]:
    if value in ("True", "False"):
        yield Said("runtime.xpu", value == "True", LAYOUT, PRINTED, number)


def _toolkit(value: str, number: int) -> Iterator[Said]:
    """Read what is called the CUDA runtime: it is the release of nvcc."""
    if found := _RUNTIME.match(value):
        yield Said("toolkit", Toolkit(found[1], "", "nvcc"), LAYOUT, PRINTED, number)


def _gcc(value: str, number: int) -> Iterator[Said]:
    """Read what ``gcc --version`` says, the compiler that nvcc calls."""
    if found := _GCC.search(value):
        yield Said("compiler", Compiler("gcc", "gcc", "gcc", found[1]), LAYOUT, PRINTED, number)


def _gpus(value: str, number: int) -> Iterator[Said]:
    if value in _NONE:
        return
    if (numbered := re.match(r"GPU ?(\d{1,3}): (\S.{1,200})$", value)) is not None:
        yield from _gpu(numbered[2], int(numbered[1]), number)
    elif re.match(r"\d{1,2} ?[x\u00d7*] ?\D", value):  # written by hand
        for gpu in gpus.several(value):
            yield Said("gpu", gpu, "what was written", TOLD, number)
    else:
        yield from _gpu(value, None, number)


def _gpu(text: str, index: int | None, number: int, *, mig: bool = False) -> Iterator[Said]:
    if (found := gpus.of(text, index)) is not None:
        if mig:
            found = gpus.with_mig(found)
        yield Said("gpu", found, LAYOUT, PRINTED, number)


def _driver(value: str, number: int) -> Iterator[Said]:
    if found := _DRIVER.match(value):
        yield Said("driver.release", found[1], LAYOUT, PRINTED, number)


def _vllm(value: str, number: int) -> Iterator[Said]:
    if found := re.match(rf"({VERSION})(?:\s|$)", value):
        yield Said("package", Package("vllm", found[1]), LAYOUT, LISTED, number)


_READERS: dict[str, Callable[[str, int], Iterator[Said]]] = {
    "PyTorch version": _torch,
    "CUDA used to build PyTorch": _cuda,
    "ROCM used to build PyTorch": _hip,
    "ROCm used to build PyTorch": _hip,
    "HIP used to build PyTorch": _hip,
    "ROCm SDK used to build PyTorch": _rocm,
    "XPU used to build PyTorch": _xpu,
    "OS": _os,
    "Libc version": _libc,
    "Python version": _python,
    "Python platform": _platform,
    "Is CUDA available": _available,
    "Is XPU available": _xpu_available,
    "CUDA runtime version": _toolkit,
    "GCC version": _gcc,
    "GPU models and configuration": _gpus,
    "Nvidia driver version": _driver,
    "vLLM Version": _vllm,
}


def _package(tag: str, text: str, number: int) -> Iterator[Said]:
    if text in _NONE or text == "No relevant packages":
        return
    if tag == "conda":
        if (found := conda_row(text, strict=False)) is not None:
            yield from packages.of_conda(found, LAYOUT, number)
        return
    if found_pin := _PINNED.match(text) or _OLD_PIN.match(text):
        installer = "uv" if tag == "uv" else ""
        package = Package(normal(found_pin[1]), found_pin[2], installer=installer)
        yield from packages.of_pip(package, LAYOUT, LISTED, number)


def _processor(key: str, value: str, lines: Sequence[Line], place: int) -> Iterator[Said]:
    number = lines[place].number
    if key == "Model name" and value and value != "-":
        yield Said("cpu.model", value[:120], LAYOUT, PRINTED, number)
    elif key == "CPU(s)" and re.fullmatch(r"\d{1,5}", value):
        yield Said("cpu.cores", int(value), LAYOUT, PRINTED, number)
    elif key == "Flags":
        flags = value.split()
        following = lines[place + 1].text if place + 1 < len(lines) else ""
        # A list that was cut short would say that the processor lacks what it has.
        whole = len(flags) >= FEWEST_FLAGS and ENDS_FLAGS.match(following)
        if whole and all(re.fullmatch(r"[\w.]{1,32}", flag) for flag in flags):
            yield Said("cpu.flags", frozenset(flags), LAYOUT, PRINTED, number)


def devices(said: Sequence[Said]) -> tuple[Device, ...]:
    """Return the devices that statements about torch's devices make up, by index."""
    found: dict[int, Device] = {}
    for one in said:
        if one.fact == "runtime.device" and isinstance(one.value, Device):
            known = found.get(one.value.index)
            new = one.value
            if known is not None:
                new = Device(new.index, new.name or known.name, new.capability or known.capability)
            found[new.index] = new
    return tuple(found[index] for index in sorted(found))
