"""Frameworks that shard by themselves are known by how they are used, not by being imported."""

from __future__ import annotations

import pytest

from torchdoctor.lint import source
from torchdoctor.lint.source import Source


@pytest.mark.parametrize(
    ("code", "managed"),
    [
        ("from accelerate import Accelerator", True),
        ("import accelerate\naccelerate.Accelerator()", True),
        ("from accelerate.utils import set_seed", False),
        ("import lightning as L\nL.Fabric(devices=2)", True),
        ("import lightning.pytorch as pl\nclass M(pl.LightningModule):\n    pass", True),
        ("import pytorch_lightning as pl\npl.seed_everything(0)", False),
        ("from lightning.fabric import Fabric", True),
        ("from pytorch_lightning.core import LightningModule as Base", True),
        ("import lightning\nlightning.pytorch.Trainer()", True),
        ("from transformers import Trainer, AutoModel", True),
        ("from transformers import AutoModel", False),
        ("from mylib import Trainer", False),
        ("class Trainer:\n    pass", False),
    ],
)
def test_a_framework_that_runs_the_training_is_known(code: str, managed: bool) -> None:  # noqa: FBT001 - one column of a table
    text = f"{code}\nimport torch\ntorch.utils.data.DistributedSampler(data)\n"
    seen = source.script(Source("x.py", text))
    assert seen.managed is managed
    assert seen.plain is not managed
