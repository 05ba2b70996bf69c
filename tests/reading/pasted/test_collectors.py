"""The reports of other programs are read as what they say of the machine.

Recorded here, with torch 2.13.0+cpu on Debian 12: accelerate 1.15.0, bitsandbytes 0.50.2,
transformers 5.24.0, diffusers 0.42.1, mmengine 0.10.7, DeepSpeed 0.19.8, xformers 0.0.35,
pip 23.2.1. Written after the source of what prints them: lightning, comfyui, conda_info,
bugreport, dxdiag, vllm.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchdoctor.diagnosis import diagnose
from torchdoctor.reading import pasted

REPORTS = Path(__file__).parent / "collectors"
CPU: dict[str, object] = {
    "torch.version": "2.13.0+cpu",
    "torch.tag": "cpu",
    "interpreter.version": "3.11.7",
}
LINUX: dict[str, object] = {"platform.system": "linux", "platform.machine": "x86_64"}
SAID: dict[str, dict[str, object]] = {
    "accelerate": CPU | LINUX,
    "bitsandbytes": CPU | LINUX,
    "transformers": CPU | LINUX,
    "diffusers": CPU | LINUX | {"runtime.available": False},
    "mmengine": CPU | {"platform.system": "linux", "runtime.available": False},
    "ds_report": {"torch.version": "2.13.0+cpu", "interpreter.version": "3.11"},
    "xformers": CPU,
    "pip_debug": {
        "interpreter.version": "3.11.7",
        "interpreter.executable": "/home/user/env/bin/python",
        "platform.system": "linux",
    },
    "lightning": {
        "torch.version": "2.4.0+cu121",
        "torch.cuda": "12.1",
        "torchvision.version": "0.19.0+cu121",
        "runtime.available": True,
        "interpreter.version": "3.11.9",
        "platform.system": "linux",
    },
    "comfyui": {
        "torch.version": "2.4.0+cu121",
        "runtime.available": True,
        "interpreter.version": "3.11.8",
        "platform.system": "win32",
    },
    "conda_info": {"platform.system": "linux", "driver.cuda": "12.4", "platform.libc": "glibc"},
    "bugreport": {"driver.kernel_module": "550.54.14", "platform.system": "linux"},
    "dxdiag": {
        "driver.release": "552.22",
        "platform.system": "win32",
        "platform.name": "Windows 11",
    },
    "vllm": {
        "torch.version": "2.7.0+cu126",
        "driver.release": "550.90.07",
        "runtime.available": True,
    },
}
GPUS = {
    "lightning": ["NVIDIA A100-SXM4-40GB"] * 2,
    "comfyui": ["NVIDIA GeForce RTX 3070"],
    "bugreport": ["NVIDIA GeForce RTX 4090"],
    "dxdiag": ["NVIDIA GeForce RTX 3060"],
    "vllm": ["NVIDIA H100 80GB HBM3"],
}


def text(name: str) -> str:
    return (REPORTS / f"{name}.txt").read_text("utf-8")


def fields(said: str) -> dict[str, Any]:
    return dict(pasted.read([("report.txt", said)]).fields)


def test_each_report_is_asked() -> None:
    assert {path.stem for path in REPORTS.glob("*.txt")} == set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_a_report_is_read_as_what_it_says(name: str) -> None:
    found = fields(text(name))
    for fact, value in SAID[name].items():
        part, _, field = fact.partition(".")
        assert getattr(found[part], field) == value, fact
    assert [gpu.name for gpu in found.get("gpus", ())] == GPUS.get(name, [])


@pytest.mark.parametrize("name", sorted(set(SAID) - {"xformers"}))
def test_a_healthy_machine_has_no_finding(name: str) -> None:
    assert not [f for f in diagnose(text(name)).findings if f.severity != "note"]


def test_an_xformers_for_another_torch_says_so_itself() -> None:
    (finding,) = diagnose(text("xformers")).findings
    assert finding.name == "ext-abi-mismatch"
    rest = text("xformers").partition("xFormers 0.0.35")
    assert not diagnose("".join(rest[1:])).findings


def test_what_pip_has_inside_itself_is_not_installed() -> None:
    assert "distributions" not in fields(text("pip_debug"))
    beside = text("pip_debug") + "\n$ pip freeze\nrequests==2.31.0\ntorch==2.13.0+cpu\n"
    assert {d.name for d in fields(beside)["distributions"]} == {"requests", "torch"}


def test_a_lightning_that_lists_other_torches_contradicts_itself() -> None:
    odd = text("lightning").replace(
        "torch:             2.4.0+cu121\n\t- triton", "torch: 2.3.0\n\t- triton"
    )
    assert pasted.read([("r.txt", odd)]).conflicts


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("dxdiag", "Card name: NVIDIA GeForce RTX 3060", "Card name: Intel(R) UHD Graphics 770"),
        ("dxdiag", "31.0.15.5222", "unknown"),
    ],
)
def test_the_driver_of_another_card_is_not_nvidias(name: str, before: str, after: str) -> None:
    assert "driver" not in fields(text(name).replace(before, after))


def test_a_model_without_its_neighbours_is_no_gpu() -> None:
    assert "gpus" not in fields("Model: NVIDIA GeForce RTX 4090\nPrice: 2000\n")
    assert "gpus" not in fields("Device: cuda:0 my card\n")


def test_keys_with_dots_are_read_from_the_report_only() -> None:
    dots = (
        "torch cuda version ............... 12.1\ntorch version .................... 2.4.0+cu121\n"
    )
    found = fields(dots + "nvcc version ..................... 12.4\n")
    assert (found["torch"].cuda, found["toolkits"][0].release) == ("12.1", "12.4")
    assert "torch" not in fields("torch version ... unknown\n")
