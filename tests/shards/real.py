"""What torch's own classes deal out, for the setups that come as JSON; run by a Python with torch.

Its argument is the file of the setups; it prints the batches of every rank of each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch  # type: ignore[import-not-found,unused-ignore]
from torch.utils.data import (  # type: ignore[import-not-found,unused-ignore]
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    get_worker_info,
)

from torchdoctor.shards import dealing
from torchdoctor.shards.dealing import Setup


class Indices(Dataset):  # type: ignore[misc,type-arg,unused-ignore]
    """A dataset whose samples are their indices."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return index


class Stream(IterableDataset):  # type: ignore[misc,type-arg,unused-ignore]
    """The same as a stream that shards itself as the setup says."""

    def __init__(self, setup: Setup, rank: int) -> None:
        self.setup, self.rank = setup, rank

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        return iter(dealing.worker_share(self.setup, self.rank, info.id if info else 0))


def loader(setup: Setup, rank: int, epoch: int) -> DataLoader:  # type: ignore[type-arg,unused-ignore]
    """Return the loader of one rank, as a script would make it."""
    if setup.stream:
        return DataLoader(
            Stream(setup, rank),
            batch_size=setup.batch_size,
            drop_last=setup.drop_last,
            num_workers=setup.workers,
        )
    data = Indices(setup.length)
    if setup.sampler == "distributed":
        sampler = DistributedSampler(
            data,
            setup.world,
            rank,
            shuffle=setup.shuffle,
            seed=setup.seed,
            drop_last=setup.sampler_drop_last,
        )
        if setup.set_epoch:
            sampler.set_epoch(epoch)
    elif setup.shuffle and setup.length:
        generator = torch.Generator()
        own = rank * 7919 if setup.prepare == "none" else 0
        generator.manual_seed(setup.seed + epoch + own)
        sampler = RandomSampler(data, generator=generator)
    else:
        sampler = SequentialSampler(data)
    return DataLoader(data, setup.batch_size, sampler=sampler, drop_last=setup.drop_last)


def prepared(made: DataLoader, setup: Setup, rank: int) -> DataLoader:  # type: ignore[type-arg,unused-ignore]
    """Return the loader as accelerate prepares it for this rank."""
    from accelerate.data_loader import (  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415
        prepare_data_loader,
    )

    return prepare_data_loader(
        made,
        num_processes=setup.world,
        process_index=rank,
        split_batches=setup.split_batches,
        even_batches=setup.even_batches,
        put_on_device=False,
        dispatch_batches=False,
        use_seedable_sampler=False,
    )


def rank_of(setup: Setup, rank: int, epoch: int) -> list[list[int]]:
    """Return the batches of one rank."""
    made = loader(setup, rank, epoch)
    if setup.prepare != "none":
        made = prepared(made, setup, rank)
    if setup.stream:
        made = getattr(made, "base_dataloader", made)
        return [batch.tolist() for batch in made]
    return [list(batch) for batch in made.batch_sampler]


def main() -> None:
    """Answer."""
    answers: list[object] = []
    for entry in json.loads(Path(sys.argv[1]).read_text("utf-8")):
        setup = Setup(**entry["setup"])
        try:
            ranks = range(setup.world)
            answers.append([rank_of(setup, rank, entry["epoch"]) for rank in ranks])
        except ValueError:
            answers.append(None)
    print(json.dumps(answers))  # noqa: T201


if __name__ == "__main__":
    main()
