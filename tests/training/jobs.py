"""Jobs of several gloo processes, with packages beside those of the base environment."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests import environments

ROOT = Path(__file__).parents[2]
WAIT = 400.0

ACCELERATE = (
    *("psutil", "pyyaml", "huggingface_hub", "safetensors", "requests", "tqdm", "packaging"),
    *("certifi", "idna", "urllib3", "charset_normalizer", "httpx", "anyio", "httpcore", "h11"),
    *("sniffio", "hf_xet"),
)
"""What accelerate imports, beside torch and NumPy."""
LIGHTNING = (
    *("lightning-utilities", "torchmetrics", "pytorch-lightning", "pyyaml", "tqdm", "packaging"),
)


def python() -> str:
    """Return the interpreter of the base environment."""
    return str(next(environments.base().root.glob("bin/python"), None) or sys.executable)


def beside(name: str, *requirements: str) -> Path:
    """Return a folder with *requirements* that are imported beside torch; made once."""
    home = environments.CACHE / "beside" / f"{Path(python()).parents[1].parent.name}-{name}"
    with environments.alone(environments.CACHE / "beside"):
        if not home.is_dir():
            draft = home.with_name(f"{home.name}.draft")
            shutil.rmtree(draft, ignore_errors=True)
            command = (python(), "-m", "pip", "install", "-q", "--no-deps", "--target")
            subprocess.run([*command, str(draft), *requirements], check=True)
            draft.rename(home)
    return home


def accelerate(version: str) -> Path:
    """Return a folder with that release of accelerate; ``newest`` is one, too."""
    spec = "accelerate" if version == "newest" else f"accelerate=={version}"
    return beside(f"accelerate-{version}", spec, *ACCELERATE)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def run(
    script: str, *words: str, world: int = 2, path: Sequence[Path] = (), **more: str
) -> dict[str, Any]:
    """Run *script* beside this file on *world* ranks; return what rank 0 printed, as JSON."""
    command = [python(), "-B", str(Path(__file__).with_name(script)), *words]
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        shared = environments.environ(
            Path(home),
            PYTHONPATH=":".join(map(str, (*path, ROOT))),
            PYTHONWARNINGS="ignore",
            OMP_NUM_THREADS="1",
            ACCELERATE_USE_CPU="true",
            WORLD_SIZE=str(world),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(free_port()),
            **more,
        )
        ranks = []
        for rank in range(world):
            one = subprocess.Popen(
                command,
                env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=stack.enter_context(Path(home, f"{rank}.out").open("w")),
                stderr=stack.enter_context(Path(home, f"{rank}.err").open("w")),
                cwd=home,
            )
            stack.callback(one.wait)
            stack.callback(one.kill)
            ranks.append(one)
        codes = [rank.wait(WAIT) for rank in ranks]
        errors = "\n".join(path.read_text()[-2000:] for path in sorted(Path(home).glob("*.err")))
        assert codes == [0] * world, errors
        found: dict[str, Any] = json.loads(Path(home, "0.out").read_text().splitlines()[-1])
        return found
