"""Audit real loaders of torch, and say what came of it; run by a Python with torch."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
from torch.utils import data  # type: ignore[import-not-found,unused-ignore]

from torchdoctor.shards.dealing import Setup, deal
from torchdoctor.training import audit


class Indices(data.Dataset):  # type: ignore[misc,type-arg,unused-ignore]
    """A dataset that is never read."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        raise RuntimeError(index)


class Stream(data.IterableDataset):  # type: ignore[misc,type-arg,unused-ignore]
    """A stream."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


class Own(data.Sampler):  # type: ignore[misc,type-arg,unused-ignore]
    """A sampler of one's own, which takes its place among the ranks as it likes."""

    def __init__(self, rank: int, world: int, *, even: bool) -> None:
        self.mine = range(rank, 30 if even or rank else 20, world)

    def __iter__(self) -> Iterator[int]:
        return iter(self.mine)

    def __len__(self) -> int:
        return len(self.mine)


def distributed(setup: Setup) -> Any:
    """Return a loader with a DistributedSampler, as rank 0 makes it in a job of one."""
    dataset = Indices(setup.length)
    sampler = data.DistributedSampler(
        dataset,
        num_replicas=1,
        rank=0,
        shuffle=setup.shuffle,
        seed=setup.seed,
        drop_last=setup.sampler_drop_last,
    )
    return data.DataLoader(dataset, setup.batch_size, sampler=sampler, drop_last=setup.drop_last)


def agrees(setup: Setup) -> bool:
    """Tell whether the audit of a real loader is what is computed, and changes nothing."""
    loader = distributed(setup)
    before = (loader.sampler.rank, loader.sampler.epoch, len(loader.sampler))
    told = audit(loader, world_size=setup.world, epochs=3)
    same = list(told.epochs) == [deal(setup, epoch) for epoch in range(3)]
    return same and before == (loader.sampler.rank, loader.sampler.epoch, len(loader.sampler))


def names(*args: Any, **options: Any) -> list[str]:
    """Return what an audit finds, notes left out."""
    return [f.name for f in audit(*args, **options).findings if f.severity != "note"]


def refusal(loader: Any, **options: Any) -> str:
    """Return why *loader* cannot be audited."""
    try:
        audit(loader, **options)
    except ValueError as error:
        return str(error)
    return ""


def main() -> None:
    """Answer."""
    draw = random.Random(4)  # noqa: S311 - setups, not secrets
    setups = [
        Setup(
            draw.choice((1, 2, 7, 16, 23, 37)),
            draw.randint(1, 6),
            draw.randint(1, 6),
            shuffle=draw.random() < 0.5,
            seed=draw.randint(0, 99),
            sampler_drop_last=draw.random() < 0.5,
            drop_last=draw.random() < 0.5,
        )
        for _ in range(200)
    ]
    generator = torch.Generator()
    generator.manual_seed(3)
    state, whole = generator.get_state(), torch.get_rng_state()
    dataset = Indices(40)
    shuffled = data.DataLoader(dataset, 4, shuffle=True, generator=generator)
    loader = distributed(Setup(40, shuffle=True))
    answer = {
        "agree": sum(map(agrees, setups)),
        "of": len(setups),
        "whole": names(shuffled),
        "whole, without a generator": names(data.DataLoader(dataset, 4, shuffle=True)),
        "drawn alike": audit(shuffled).epochs[0][0] == audit(shuffled).epochs[0][1],
        "another order": audit(shuffled).epochs[0] != audit(shuffled).epochs[1],
        "right": names(loader),
        "forgotten": names(loader, set_epoch=False),
        "made": names(lambda rank, world: Own(rank, world, even=True), batch_size=3),
        "uneven": names(lambda rank, world: Own(rank, world, even=False), batch_size=3),
        "classes": names(distributed(Setup(40, shuffle=False)), labels=[i % 2 for i in range(40)]),
        "resumed": names(loader, resume_from=(4, 2)),
        "resumed between epochs": names(loader, resume_from=(4, 0)),
        "resumed as it was": [f.name for f in audit(loader, resume_from=(2, 2)).findings],
        "resumed, made": names(
            lambda rank, world: Own(rank, world, even=True), batch_size=3, resume_from=(4, 1)
        ),
        "a sampler": names(loader.sampler),
        "a batch sampler": names(loader.batch_sampler),
        "stream": refusal(data.DataLoader(Stream(), batch_size=2)),
        "no numbers": [
            refusal(loader, **wrong)
            for wrong in ({"world_size": 0}, {"epochs": 0}, {"resume_from": (0, 1)})
        ],
        "text": str(audit(distributed(Setup(5)), epochs=1)),
        "unchanged": bool(torch.equal(state, generator.get_state()))
        and bool(torch.equal(whole, torch.get_rng_state())),
    }
    print(json.dumps(answer))  # noqa: T201


if __name__ == "__main__":
    main()
