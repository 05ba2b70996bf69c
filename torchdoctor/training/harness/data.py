"""What is trained on what: the part to replace with your own.

``engine`` and ``train`` only ask for ``dataset()``, ``model()`` and ``loss()``, and for the
sampler below, which any dataset with a length can use.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch  # type: ignore[import-not-found,unused-ignore]
from torch import nn
from torch.utils import data  # type: ignore[import-not-found,unused-ignore]

SAMPLES = 4093
"""A prime, so that nothing comes out even by chance."""
INPUTS = 64


class Numbers(data.Dataset):  # type: ignore[misc,type-arg,unused-ignore]
    """Samples that depend on their index alone; each comes with it."""

    def __init__(self, length: int, dtype: torch.dtype) -> None:
        self.length, self.dtype = length, dtype

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        own = torch.Generator().manual_seed(index)
        x = torch.randn(INPUTS, generator=own, dtype=self.dtype)
        return x, x.sin().sum(0, keepdim=True), index


def dataset(dtype: torch.dtype) -> Numbers:
    """Return the samples."""
    return Numbers(SAMPLES, dtype)


def model(dtype: torch.dtype, width: int, *, batch_norm: bool = False) -> nn.Module:
    """Return the model, with the same weights whenever the same seed was set."""
    norm = nn.BatchNorm1d(width) if batch_norm else nn.LayerNorm(width)
    layers = nn.Sequential(
        *(nn.Linear(INPUTS, width), norm, nn.GELU()),
        *(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)),
    )
    return layers.to(dtype)


def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of a batch: DDP averages it over ranks, whose batches are equal."""
    return nn.functional.mse_loss(output, target)


class ShardedSampler(data.Sampler):  # type: ignore[misc,type-arg,unused-ignore]
    """A DistributedSampler that can go on in the middle of an epoch, on any number of ranks.

    The order of an epoch depends on seed + epoch alone. What is left of it after ``consumed``
    samples is dealt out in turn, so that step s of all ranks together is one slice of the order,
    the same whatever the number of ranks.
    """

    def __init__(self, length: int, rank: int, world: int, seed: int) -> None:
        self.length, self.rank, self.world, self.seed = length, rank, world, seed
        self.epoch = self.consumed = 0

    def set_epoch(self, epoch: int, consumed: int = 0) -> None:
        """Deal out another order: without this every epoch would have the same one."""
        self.epoch, self.consumed = epoch, consumed

    def __len__(self) -> int:
        return (self.length - self.consumed) // self.world

    def __iter__(self) -> Iterator[int]:
        own = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.length, generator=own).tolist()[self.consumed :]
        whole = len(order) // self.world * self.world  # each rank gets equally many
        return iter(order[self.rank : whole : self.world])
