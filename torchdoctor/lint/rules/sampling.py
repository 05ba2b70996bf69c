"""Which rank sees which samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchdoctor.lint import edits, guards
from torchdoctor.lint.rule import Hit, rule
from torchdoctor.lint.script import Script, argument, is_none, is_true, unpacks

_EVALUATION = re.compile(
    r"(?:^|[^a-z])(?:val|valid|validation|test|eval|evaluation|dev)(?=[^a-z]|set|data|loader|sampler|$)",
    re.IGNORECASE,
)
_LOCAL = re.compile(r"local_?(?:rank|process_index)|^gpu(?:_?id)?$|LOCAL_RANK|SLURM_LOCALID")
_SHARDS = re.compile(
    r"get_worker_info|rank|world_size|num_replicas|shard|process_index|num_processes"
    r"|split_dataset_by_node|worker_id|num_workers"
)
_EPOCH = re.compile(
    r"(?:start|resume|initial|last|begin|current|saved|finished|prev)\w*_(?:epoch|iter|step)"
    r"|epochs?_(?:run|start|offset|done)|\[[\"']epoch[\"']\]|\.get\(\s*[\"']epoch|\.epoch\b"
    r"|[\"']epoch[\"']\s*\]"
)


@rule("error", "DistributedSampler")
def missing_set_epoch(script: Script) -> Iterator[Hit]:
    """Tell that a DistributedSampler shuffles the same way in every epoch.

    The order is drawn from seed + epoch, and the epoch stays 0 unless set_epoch() is called. Each
    rank then repeats its own share in its own order; the ranks together still see everything.
    What is lost is the reshuffling between ranks and batches. Lightning, accelerate and the
    Trainer of transformers call set_epoch() themselves. A note where the loop is in another file.

    Bad::

        sampler = torch.utils.data.DistributedSampler(dataset)
        loader = torch.utils.data.DataLoader(dataset, sampler=sampler)
        for epoch in range(10):
            for batch in loader:
                model(batch).backward()

    Good::

        sampler = torch.utils.data.DistributedSampler(dataset)
        loader = torch.utils.data.DataLoader(dataset, sampler=sampler)
        for epoch in range(10):
            sampler.set_epoch(epoch)
            for batch in loader:
                model(batch).backward()
    """
    if script.managed or script.named("set_epoch"):
        return
    for call in script.samplers:
        if _evaluates(script, call) or unpacks(call):
            continue
        asked = argument(call, "shuffle", 3)
        shuffles = True if asked is None else script.constant(asked)
        if shuffles is False:
            continue
        sure = script.trains and shuffles is True
        yield Hit(
            call,
            "This DistributedSampler shuffles, but set_epoch() is called nowhere in this file: "
            "every epoch repeats one order; call sampler.set_epoch(epoch) before each epoch.",
            None if sure else "note",
            edits=edits.set_epoch(script, call) if sure else (),
        )


@rule("error", "DataLoader", confidence="certain")
def sampler_and_shuffle(script: Script) -> Iterator[Hit]:
    """Tell that a DataLoader gets a sampler and shuffle=True, which it refuses.

    It raises ValueError: sampler option is mutually exclusive with shuffle. A DistributedSampler
    shuffles by itself. Where the sampler is None without a job of several ranks, the script works
    on one GPU and fails on two.

    Bad::

        sampler = torch.utils.data.DistributedSampler(dataset)
        loader = torch.utils.data.DataLoader(dataset, sampler=sampler, shuffle=True)

    Good::

        sampler = torch.utils.data.DistributedSampler(dataset, shuffle=True)
        loader = torch.utils.data.DataLoader(dataset, sampler=sampler)
    """
    for call in script.torch("DataLoader"):
        sampler, shuffle = argument(call, "sampler", 3), argument(call, "shuffle", 2)
        if sampler is None or shuffle is None or script.constant(shuffle) is not True:
            continue
        meanings = list(script.meanings(sampler))
        given = [m for m in meanings if m is not None and not is_none(m)]
        if not given:  # a parameter may be None
            continue
        maybe = len(given) < len(meanings)
        when = "as soon as its sampler is not None" if maybe else "when it is made"
        yield Hit(
            call,
            f"This DataLoader has sampler={script.text_of(sampler)} and shuffle=True: it raises "
            f"ValueError {when}; leave shuffle to the sampler.",
            edits=edits.no_shuffle(script, call, sampler if maybe else None),
        )


@rule("error", "DistributedSampler")
def local_rank_as_sampler_rank(script: Script) -> Iterator[Hit]:
    """Tell that a sampler gets the local rank, the number of a GPU within its host.

    On two hosts with two GPUs, local ranks are 0 1 0 1: both hosts read the same shards, and half
    of the data is never seen. Without rank= the sampler asks the process group, which is right.

    Bad::

        local_rank = int(os.environ["LOCAL_RANK"])
        sampler = torch.utils.data.DistributedSampler(dataset, num_replicas=8, rank=local_rank)

    Good::

        sampler = torch.utils.data.DistributedSampler(dataset)
    """
    for call in script.samplers:
        rank = argument(call, "rank", 2)
        if rank is None:
            continue
        names = [
            n.id if isinstance(n, ast.Name) else n.attr
            for n in ast.walk(rank)
            if isinstance(n, ast.Name | ast.Attribute)
        ]
        local = any(_LOCAL.search(name) for name in names) or "LOCAL_RANK" in script.text_of(rank)
        if local and not script.mentions(
            rank, lambda w: bool(re.search(r"node|global|GROUP_RANK", w)), 1
        ):
            yield Hit(
                call,
                f"The rank of this sampler is the local one ({script.text_of(rank)}): every host "
                "reads the same shards; leave rank= out, or pass dist.get_rank().",
            )


@rule("warning", "DistributedSampler")
def evaluation_sampler_shuffles(script: Script) -> Iterator[Hit]:
    """Tell that a DistributedSampler for evaluation shuffles, which is its default.

    Every sample is still evaluated, whatever the order. But the order changes which samples are
    repeated to fill the last batch, and outputs no longer line up with the dataset. A metric that
    jitters for this reason is one that each rank reports without gathering.

    Bad::

        sampler = torch.utils.data.DistributedSampler(val_set)

    Good::

        sampler = torch.utils.data.DistributedSampler(val_set, shuffle=False)
    """
    for call in script.samplers:
        shuffle = argument(call, "shuffle", 3)
        if unpacks(call) or not _evaluates(script, call):
            continue
        if shuffle is None or script.constant(shuffle) is True:
            how = "by default" if shuffle is None else "as asked"
            yield Hit(
                call,
                f"The sampler of {_dataset(script, call)}, used to evaluate, shuffles {how}; pass "
                "shuffle=False.",
            )


@rule("note", "DistributedSampler", confidence="certain")
def sampler_drops_tail(script: Script) -> Iterator[Hit]:
    """Say that a DistributedSampler with drop_last=True leaves out up to world size - 1 samples.

    With shuffling and set_epoch() others are left out in each epoch, so that all take part in
    time; without either it is always the same ones. With fewer samples than ranks it yields
    nothing at all, silently. drop_last of a DataLoader is another thing: it drops a short batch.

    Bad::

        sampler = torch.utils.data.DistributedSampler(train_set, drop_last=True)

    Good::

        sampler = torch.utils.data.DistributedSampler(train_set)
    """
    for call in script.samplers:
        if is_true(argument(call, "drop_last", 5)) and not _evaluates(script, call):
            fixed = script.constant(argument(call, "shuffle", 3)) is False
            which = "the same ones in every epoch" if fixed else "others in each epoch"
            yield Hit(
                call,
                f"This sampler drops up to world size - 1 samples, {which}"
                f"{'' if fixed else ', if set_epoch() is called'}.",
            )


@rule("note", "DistributedSampler")
def evaluation_padding_counted(script: Script) -> Iterator[Hit]:
    """Say that a sampler for evaluation repeats samples so that all ranks get equally many.

    Up to world size - 1 samples are counted twice, which biases a metric by at most that part of
    the dataset. Gather the outputs and cut them to the length of the dataset, or evaluate the
    rest on one rank. They come from the head of the permutation, not of the dataset.

    Bad::

        sampler = torch.utils.data.DistributedSampler(test_set, shuffle=False)

    Good::

        sampler = torch.utils.data.DistributedSampler(test_set, shuffle=False, drop_last=True)
        rest = torch.utils.data.Subset(test_set, range(len(sampler) * world, len(test_set)))
    """
    for call in script.samplers:
        dropped = argument(call, "drop_last", 5)
        if _evaluates(script, call) and not unpacks(call) and not is_true(dropped):
            yield Hit(
                call,
                f"The sampler of {_dataset(script, call)} repeats up to world size - 1 samples: "
                "gather the outputs and cut them to the length of the dataset.",
            )


@rule("warning", "IterableDataset")
def iterable_not_sharded(script: Script) -> Iterator[Hit]:
    """Tell that an IterableDataset gives every rank and every worker all of the stream.

    No sampler can shard a stream: its ``__iter__`` has to, by rank and by worker. With 4 workers
    on 2 ranks each sample is seen 8 times an epoch. A note where the caller may have sharded
    what it iterates, or where accelerate or Lightning does.

    Bad::

        class Lines(torch.utils.data.IterableDataset):
            def __iter__(self):
                yield from open("lines.txt")

        loader = torch.utils.data.DataLoader(Lines(), num_workers=4)

    Good::

        class Lines(torch.utils.data.IterableDataset):
            def __iter__(self):
                info = torch.utils.data.get_worker_info()
                step, start = (info.num_workers, info.id) if info else (1, 0)
                yield from itertools.islice(open("lines.txt"), start, None, step)

        loader = torch.utils.data.DataLoader(Lines(), num_workers=4)
    """
    for owner in script.all(ast.ClassDef):
        assert isinstance(owner, ast.ClassDef)
        bases = [base for base in owner.bases if script.of_torch(base)]
        if not any(script.dotted(b).rpartition(".")[2] == "IterableDataset" for b in bases):
            continue
        if "__iter__" not in {n.name for n in owner.body if isinstance(n, ast.FunctionDef)}:
            continue
        if _SHARDS.search("\n".join(_lines(script, owner))):
            continue
        used = script.named(owner.name)
        parallel = script.distributed or any(
            _workers(script, c) for c in script.torch("DataLoader")
        )
        handed = any(
            script.mentions(a, lambda w: bool(_SHARDS.search(w)), 1)
            for call in used
            for a in (*call.args, *(k.value for k in call.keywords))
        )
        yield Hit(
            owner,
            f"{owner.name} shards neither by rank nor by worker: each of them yields the whole "
            "stream; take every n-th item by rank and by get_worker_info().",
            None if used and parallel and not (handed or script.managed) else "note",
        )


@rule("warning", "DistributedDataParallel")
def loader_not_sharded(script: Script) -> Iterator[Hit]:
    """Tell that a shuffling DataLoader of a DDP script has no sampler.

    Every rank then draws from the whole dataset, with its own order: an epoch takes as long as on
    one GPU, and the ranks see the same samples at different times. Plain torch never shards by
    itself; accelerate, Lightning and the Trainer of transformers do.

    Bad::

        torch.distributed.init_process_group()
        model = torch.nn.parallel.DistributedDataParallel(model)
        loader = torch.utils.data.DataLoader(dataset, shuffle=True)
        for batch in loader:
            model(batch).backward()

    Good::

        torch.distributed.init_process_group()
        model = torch.nn.parallel.DistributedDataParallel(model)
        sampler = torch.utils.data.DistributedSampler(dataset)
        loader = torch.utils.data.DataLoader(dataset, sampler=sampler)
        sampler.set_epoch(0)
        for batch in loader:
            model(batch).backward()
    """
    if script.managed or not script.wraps or not script.trains:
        return
    loaders = script.torch("DataLoader")
    for call in loaders:
        names = {"sampler": 3, "batch_sampler": 4}
        if unpacks(call) or any(not is_none(argument(call, n, i)) for n, i in names.items()):
            continue
        if not is_true(argument(call, "shuffle", 2)) or any(True for _ in guards.own(script, call)):
            continue
        dataset = argument(call, "dataset", 0)
        if dataset is not None and guards.says_rank(script, dataset):
            continue
        if _EVALUATION.search(_dataset(script, call)) or any(
            script.exclusive(call, other) and argument(other, "sampler", 3) is not None
            for other in loaders
        ):
            continue
        if any(script.exclusive(call, wrap) for wrap in script.wraps):
            continue
        if guards.open_to_all(script, call):
            yield Hit(
                call,
                f"This DataLoader of {_dataset(script, call)} shuffles without a sampler: every "
                "rank draws from the whole dataset; give it a DistributedSampler.",
            )


@rule("error", "Accelerator")
def sharded_twice(script: Script) -> Iterator[Hit]:
    """Tell that a loader with a DistributedSampler is prepared by accelerate, which shards again.

    prepare() deals out the batches of every loader, whatever its sampler: on two ranks half of
    the data is never seen, and nothing says so. Advice to pass a DistributedSampler to accelerate
    is wrong for every release since 0.1; type(loader.sampler) proves nothing after prepare(), as
    it always is SequentialSampler then. Look at loader.batch_sampler, or count the indices.

    Bad::

        accelerator = accelerate.Accelerator()
        sampler = torch.utils.data.DistributedSampler(dataset)
        loader = torch.utils.data.DataLoader(dataset, sampler=sampler)
        loader = accelerator.prepare(loader)

    Good::

        accelerator = accelerate.Accelerator()
        loader = torch.utils.data.DataLoader(dataset, shuffle=True)
        loader = accelerator.prepare(loader)
    """
    if not any(
        script.dotted(c.func).startswith("accelerate.") for c in script.named("Accelerator")
    ):
        return
    prepared = {
        key
        for call in script.named("prepare", "prepare_data_loader")
        for given in call.args
        if (key := script.key(given)) is not None
    }
    inline = {
        given for call in script.named("prepare", "prepare_data_loader") for given in call.args
    }
    samplers = set(script.samplers)
    for call in script.torch("DataLoader"):
        sampler = argument(call, "sampler", 3)
        if sampler is None or not samplers & {m for m in script.meanings(sampler) if m is not None}:
            continue
        if call in inline or prepared & set(script.assigned_to(call)):
            yield Hit(
                call,
                "This loader has a DistributedSampler and is prepared by accelerate, which shards "
                "it again: each rank sees only its share of a share; leave the sampler out.",
            )


@rule("warning", "use_seedable_sampler")
def seedable_sampler_without_seed(script: Script) -> Iterator[Hit]:
    """Tell that accelerate's seedable sampler is asked for, but nobody sets a seed.

    It draws the order from the seed of each process. Where they differ, the ranks permute
    differently, and the shards overlap: 6 of 24 samples were seen twice in a trial. set_seed()
    gives all of them the same.

    Bad::

        from accelerate import Accelerator, DataLoaderConfiguration

        config = DataLoaderConfiguration(use_seedable_sampler=True)

    Good::

        from accelerate import Accelerator, DataLoaderConfiguration
        from accelerate.utils import set_seed

        set_seed(0)
        config = DataLoaderConfiguration(use_seedable_sampler=True)
    """
    if script.named("set_seed", "manual_seed", "seed_everything"):
        return
    for call in script.named("DataLoaderConfiguration"):
        if is_true(argument(call, "use_seedable_sampler")):
            yield Hit(
                call,
                "use_seedable_sampler=True without set_seed(): where the processes' seeds differ, "
                "their shards overlap; call accelerate.utils.set_seed() first.",
            )


@rule("warning", "set_epoch")
def epoch_not_resumed(script: Script) -> Iterator[Hit]:
    """Tell that a run is resumed, but not the epoch that its sampler is given.

    set_epoch() then starts at 0 again: the first epochs after the restart repeat the shuffles
    of the first ones before it. Save the epoch beside the weights and start the loop there.

    Bad::

        sampler = torch.utils.data.DistributedSampler(dataset)
        model.load_state_dict(torch.load("last.pt"))
        for epoch in range(10):
            sampler.set_epoch(epoch)
            for batch in loader:
                model(batch).backward()
            torch.save(model.state_dict(), "last.pt")

    Good::

        sampler = torch.utils.data.DistributedSampler(dataset)
        state = torch.load("last.pt")
        model.load_state_dict(state["model"])
        for epoch in range(state["epoch"] + 1, 10):
            sampler.set_epoch(epoch)
            for batch in loader:
                model(batch).backward()
            torch.save({"model": model.state_dict(), "epoch": epoch}, "last.pt")
    """
    loads, saves = script.named("load_state_dict"), script.torch("save")
    if not (script.samplers and script.trains and loads and saves and script.torch("load")):
        return
    if script.managed or not script.named("set_epoch") or _EPOCH.search(script.text):
        return
    yield Hit(
        loads[0],
        "Weights are loaded to go on, but no epoch is: set_epoch() begins at 0 again and repeats "
        "the first shuffles; save the epoch and start the loop there.",
    )


def _evaluates(script: Script, sampler: ast.Call) -> bool:
    """Tell whether the names around *sampler* say that it is for evaluation."""
    names = [_dataset(script, sampler), *(key[1] for key in script.assigned_to(sampler))]
    return any(_EVALUATION.search(name) for name in names) and not any(
        re.search(r"train", name, re.IGNORECASE) for name in names
    )


def _dataset(script: Script, call: ast.Call) -> str:
    given = argument(call, "dataset", 0)
    return script.text_of(given)[:60] if given is not None else "its dataset"


def _workers(script: Script, loader: ast.Call) -> bool:
    workers = argument(loader, "num_workers", 5)
    return workers is not None and script.constant(workers) != 0


def _lines(script: Script, node: ast.ClassDef) -> list[str]:
    return script.text.split("\n")[node.lineno - 1 : node.end_lineno]
