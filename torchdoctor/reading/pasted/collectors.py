"""What the reports of other programs say: DeepSpeed, Lightning, ComfyUI, NVIDIA's, DirectX's.

Sources: deepspeed/env_report.py (ds_report); requirements/collect_env_details.py of Lightning;
comfy/model_management.py of ComfyUI (what it logs when it starts); nvidia-bug-report.sh, which
prints the files of /proc/driver/nvidia; dxdiag of Windows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from torchdoctor.facts import Gpu, Toolkit
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import (
    LISTED,
    PRINTED,
    TOLD,
    VERSION,
    Package,
    Said,
    normal,
)

LONGEST = 400
_DEEPSPEED = re.compile(
    r"\s{0,8}(torch version|torch cuda version|torch hip version|nvcc version|deepspeed info)"
    r" \.{2,40} {1,4}(\S.{0,200})$"
)
_NUMBER = re.compile(r"\d{1,2}\.\d{1,3}")
_COMFY = re.compile(r"Device: cuda:(\d{1,3}) (NVIDIA [^:]{2,80}?) : (?:cudaMallocAsync|native)\b")
_MODEL = re.compile(r"Model:\s{1,24}((?:NVIDIA|Tesla|Quadro|GeForce)\b.{1,80}?)\s*$")
_IRQ = re.compile(r"IRQ:\s{1,24}\d{1,5}\s*$")
_DXDIAG = re.compile(r"\s{1,24}(Operating System|Card name|Driver Version): (\S.{0,200})$")
_WINDOWS_NAME = re.compile(r"(Windows (?:Server )?[\w.]{1,8})\b.{0,40}\(10\.0, Build (\d{4,6})\)")
_WDDM = re.compile(r"\d{1,3}\.\d{1,3}\.\d{0,2}(\d)\.(\d{4})$")


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield what such reports in *lines* say."""
    shown = [line for line in lines if line.kind == "output"]
    for reader in (_deepspeed, _lightning, _comfyui, _bug_report, _dxdiag):
        yield from reader(shown)


def _deepspeed(lines: Sequence[Line]) -> Iterator[Said]:
    layout = "ds_report"
    for line in lines:
        found = _DEEPSPEED.match(line.text[:LONGEST])
        if found is None:
            continue
        key, value = found[1], found[2].strip()
        number = _NUMBER.match(value)
        if key == "torch version" and re.fullmatch(VERSION, value):
            yield Said("torch.version", value, layout, PRINTED, line.number)
        elif key == "torch cuda version" and number:
            yield Said("torch.cuda", number[0], layout, PRINTED, line.number)
        elif key == "torch hip version" and number:
            yield Said("torch.hip", value.split(" ", maxsplit=1)[0], layout, PRINTED, line.number)
        elif key == "nvcc version" and number:
            yield Said("toolkit", Toolkit(number[0], "", "nvcc"), layout, PRINTED, line.number)
        elif key == "deepspeed info" and (version := re.match(VERSION, value)):
            yield Said("package", Package("deepspeed", version[0]), layout, LISTED, line.number)


# ---- Lightning -----------------------------------------------------------------------------------

_SECTION = re.compile(r"\s{0,8}\* (CUDA|Lightning|Packages|System):\s*$")
_ENTRY = re.compile(r"\s{0,16}- ([\w.-]{1,80}):(?:\s{1,40}(\S.{0,200}))?$")
_ITEM = re.compile(r"\s{1,24}- (\S.{0,120})$")


def _lightning(lines: Sequence[Line]) -> Iterator[Said]:
    """Read the sections: bulleted keys, below CUDA a bulleted list of GPUs."""
    layout, section, key = "Lightning", "", ""
    for line in lines:
        text = line.text[:LONGEST]
        if found := _SECTION.match(text):
            section, key = found[1], ""
        elif not section:
            continue
        elif entry := _ENTRY.match(text):
            key = entry[1]
            if reader := _LIGHTNING.get(section):
                yield from reader(key, (entry[2] or "").strip(), line.number)
        elif (section, key) == ("CUDA", "GPU") and (item := _ITEM.match(text)):
            if item[1].startswith("NVIDIA"):
                yield Said("gpu", Gpu(item[1].strip()), layout, PRINTED, line.number)
        elif not text.strip():
            section = ""


def _of_cuda(key: str, value: str, number: int) -> Iterator[Said]:
    if key == "available" and value in ("True", "False"):
        yield Said("runtime.available", value == "True", "Lightning", PRINTED, number)
    elif key == "version" and re.fullmatch(r"\d{1,2}\.\d{1,2}", value):
        yield Said("torch.cuda", value, "Lightning", PRINTED, number)


def _of_packages(key: str, value: str, number: int) -> Iterator[Said]:
    if re.fullmatch(VERSION, value):
        yield Said("package", Package(normal(key), value), "Lightning", LISTED, number)
        if key in ("torch", "torchvision"):
            yield Said(f"{key}.version", value, "Lightning", PRINTED, number)


def _of_system(key: str, value: str, number: int) -> Iterator[Said]:
    systems = {"Linux": "linux", "Windows": "win32", "Darwin": "darwin"}
    if key == "OS" and value in systems:
        yield Said("platform.system", systems[value], "Lightning", PRINTED, number)
    elif key == "python" and re.fullmatch(r"3\.\d{1,2}\.\d{1,3}", value):
        yield Said("interpreter.version", value, "Lightning", PRINTED, number)


_LIGHTNING: dict[str, Callable[[str, str, int], Iterator[Said]]] = {
    "CUDA": _of_cuda,
    "Lightning": _of_packages,
    "Packages": _of_packages,
    "System": _of_system,
}


# ---- what names the GPU --------------------------------------------------------------------------


def _comfyui(lines: Sequence[Line]) -> Iterator[Said]:
    for line in lines:
        if found := _COMFY.match(line.text[:LONGEST]):
            gpu = Gpu(found[2].strip(), index=int(found[1]))
            yield Said("gpu", gpu, "ComfyUI", PRINTED, line.number)
            yield Said("runtime.available", True, "ComfyUI", PRINTED, line.number)  # noqa: FBT003


def _bug_report(lines: Sequence[Line]) -> Iterator[Said]:
    """Read /proc/driver/nvidia/gpus/*/information, which begins with the model and the IRQ."""
    for line, below in pairwise(lines):
        if _IRQ.match(below.text[:LONGEST]) and (found := _MODEL.match(line.text[:LONGEST])):
            yield Said("gpu", Gpu(found[1].strip()), "/proc/driver/nvidia", PRINTED, line.number)


def _dxdiag(lines: Sequence[Line]) -> Iterator[Said]:
    """Read the cards; Windows' number of an NVIDIA driver ends in the release without its dot."""
    layout, card = "dxdiag", ""
    for line in lines:
        found = _DXDIAG.match(line.text[:LONGEST])
        if found is None:
            continue
        key, value = found[1], found[2].strip()
        if key == "Operating System" and (windows := _WINDOWS_NAME.match(value)):
            yield Said("platform.system", "win32", layout, PRINTED, line.number)
            yield Said("platform.name", windows[1], layout, PRINTED, line.number)
        elif key == "Card name":
            card = value
            if card.startswith("NVIDIA"):
                yield Said("gpu", Gpu(card), layout, PRINTED, line.number)
        elif key == "Driver Version" and card.startswith("NVIDIA") and (wddm := _WDDM.match(value)):
            digits = wddm[1] + wddm[2]
            release = f"{digits[:3]}.{digits[3:]}"
            yield Said("driver.release", release, layout, TOLD, line.number)
