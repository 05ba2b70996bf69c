"""The loaders that Lightning prepares, sanitized and iterated in a job of gloo processes.

Run as kinds.py is, by a Python with torch and Lightning.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import lightning  # type: ignore[import-not-found,unused-ignore]
import torch  # type: ignore[import-not-found,unused-ignore]
import torch.distributed as dist  # type: ignore[import-not-found,unused-ignore]
from torch.utils import data  # type: ignore[import-not-found,unused-ignore]

from tests.training.kinds import N, Numbers, Own, generator, outcome, truth

warnings.simplefilter("ignore")


def loaders() -> dict[str, Callable[[], Any]]:
    """Return what a script would give to Lightning."""
    d = Numbers()
    return {
        "default": lambda: data.DataLoader(d, 2),
        "shuffle": lambda: data.DataLoader(d, 2, shuffle=True),
        "23": lambda: data.DataLoader(Numbers(23), 2),
        "own": lambda: data.DataLoader(d, 2, sampler=Own()),
        "weighted": lambda: data.DataLoader(
            d, 2, sampler=data.WeightedRandomSampler(torch.ones(N), N, replacement=False)
        ),
        "weighted, one seed": lambda: data.DataLoader(
            d,
            2,
            sampler=data.WeightedRandomSampler(
                torch.ones(N), N, replacement=False, generator=generator(3)
            ),
        ),
        "distributed": lambda: data.DataLoader(
            d,
            2,
            sampler=data.DistributedSampler(d, dist.get_world_size(), dist.get_rank()),
        ),
    }


class Model(lightning.LightningModule):  # type: ignore[misc,unused-ignore]
    """The least that a Trainer fits."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch: Any, number: int) -> Any:
        del number
        return self.layer(batch.float().reshape(-1, 1)).sum()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


class Look(lightning.Callback):  # type: ignore[misc,unused-ignore]
    """Sanitize what the Trainer has made of its loader."""

    def __init__(self) -> None:
        self.found: dict[str, object] = {}

    def on_train_start(self, trainer: Any, module: Any) -> None:
        del module
        torch.manual_seed(1000 + dist.get_rank())
        self.found = outcome(trainer.train_dataloader)
        torch.manual_seed(1000 + dist.get_rank())
        self.found["truth"] = truth(trainer.train_dataloader)


def main() -> None:
    found: dict[str, object] = {}
    options = {"accelerator": "cpu", "devices": 2, "strategy": "ddp"}
    fabric = lightning.Fabric(**options)
    fabric.launch()
    for name, make in loaders().items():
        torch.manual_seed(1000 + dist.get_rank())
        made = fabric.setup_dataloaders(make())
        found[f"fabric: {name}"] = one = outcome(made)
        torch.manual_seed(1000 + dist.get_rank())
        one["truth"] = truth(made)
    bare = fabric.setup_dataloaders(loaders()["shuffle"](), use_distributed_sampler=False)
    found["fabric: left alone"] = outcome(bare) | {"truth": truth(bare)}
    for name, make in loaders().items():
        look = Look()
        trainer = lightning.Trainer(
            **options,
            max_steps=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[look],
        )
        trainer.fit(Model(), make())
        found[f"trainer: {name}"] = look.found
    if dist.get_rank() == 0:
        print(json.dumps(found))  # noqa: T201
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
