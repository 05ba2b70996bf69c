"""The facts in public reports, as a person reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from torchdoctor.facts import Unknown
from torchdoctor.reading import pasted
from torchdoctor.reading.pasted import Pasted

CORPUS = Path(__file__).parents[2] / "corpus"


def read(number: str) -> Pasted:
    (path,) = CORPUS.glob(f"{number}-*/input.txt")
    return pasted.read([("input.txt", path.read_text("utf-8"))])


def get(number: str, path: str) -> Any:
    name, *rest = path.split(".")
    value: Any = read(number).fields[name]
    for part in rest:
        value = (
            value[int(part)]
            if part.isdigit()
            else value[part]
            if part.isupper()
            else getattr(value, part)
        )
    return value


@pytest.mark.parametrize(
    ("number", "path", "expected"),
    [
        ("001", "torch.version", "2.9.0"),
        ("001", "interpreter.kind", "venv"),
        ("001", "trial.error.type", "OSError"),
        ("004", "torch.tag", "cpu"),
        ("006", "interpreter.machine", "AMD64"),
        ("006", "platform.version", "10.0.22631"),
        ("010", "torch.tag", "cu126"),
        (
            "013",
            "interpreter.user_site",
            r"C:\Users\user\AppData\Roaming\Python\Python312\site-packages",
        ),
        ("015", "interpreter.kind", "store"),
        ("022", "torch.tag", "cu132"),
        ("023", "torch.tag", "cpu"),
        ("023", "driver.release", "470.182.03"),
        ("023", "toolkits.0.release", "11.4"),
        ("025", "torch.tag", "cpu"),
        ("025", "platform.machine", "aarch64"),
        ("026", "driver.cuda", "11.4"),
        ("028", "gpus.0.capability", (12, 0)),
        ("031", "gpus.0.capability", (6, 1)),
        ("035", "driver.release", "460.80"),
        ("037", "driver.fabric", "stopped"),
        ("038", "driver.kernel_module", "550.90.07"),
        ("038", "driver.library", "550.107.02"),
        ("038", "driver.code", 18),
        ("040", "variables.CUDA_VISIBLE_DEVICES", "2"),
        ("043", "gpus.1.mig", True),
        ("044", "platform.wsl", 1),
        ("045", "torchvision.tag", "cu124"),
        ("050", "conda.prefix", "/home/user/miniconda3/envs/fsdp"),
        ("051", "variables.LD_LIBRARY_PATH", "/usr/local/cuda-12.1/lib64:"),
        (
            "053",
            "trial.error.message",
            "libcurand.so.10: cannot open shared object file: No such file or directory",
        ),
        ("059", "torch.version", "2.1.2+cpu"),
        ("060", "modules.torch.folder", "/home/user/.local/lib/python3.10/site-packages"),
        ("065", "leftovers.0.name", "~orch"),
        ("068", "torch.version", "2.4.1+cu121"),
        ("068", "conda.packages.0.version", "1.11.0"),
        ("073", "interpreter.bits", 32),
        ("076", "interpreter.executable", "/anaconda/envs/other/bin/python"),
        ("076", "torch", None),
        ("081", "driver.release", "545.23.08"),
        ("082", "limits.shm", 64 << 20),
        ("103", "platform.wsl", 2),
        ("110", "torch.tag", "xpu"),
        ("112", "runtime.available", True),
        ("113", "torch.version", "1.9.0+cu102"),
        ("113", "torchvision.version", "0.7.0"),
        ("118", "torch.version", "2.1.0"),
        ("119", "torch.tag", "cpu"),
    ],
)
def test_a_report_says(number: str, path: str, expected: object) -> None:
    if path == "modules.torch.folder":
        assert cast("Any", read(number).fields["modules"])["torch"].folder == expected
    else:
        assert get(number, path) == expected


@pytest.mark.parametrize(
    ("number", "absent"),
    [
        ("107", {"driver", "gpus", "toolkits"}),
        ("109", {"driver", "gpus", "toolkits"}),
        ("034", {"driver", "torch", "platform"}),
        ("113", {"driver", "torchaudio"}),
        ("079", {"variables", "torch"}),
        ("112", {"platform"}),
    ],
)
def test_a_report_does_not_say(number: str, absent: set[str]) -> None:
    assert not absent & set(read(number).fields)


def test_a_report_that_contradicts_itself_is_kept_apart() -> None:
    assert isinstance(read("040").fields["runtime"], Unknown)
    (conflict,) = read("094").conflicts
    assert conflict.fact == "distributions.nvidia-nccl-cu12"
    assert [value for value, _ in conflict.values] == ["2.20.5", "2.19.3"]


def test_no_report_of_the_corpus_shows_a_whole_environment() -> None:
    assert [p for p in CORPUS.glob("*") if p.is_dir() and read(p.name[:3]).complete] == []
