"""Ask a user's own loader, as one rank of a job, which samples it would yield, in JSON lines.

It runs in the user's interpreter, from standard input, with a JSON object as its argument: ``file``
and ``name`` say what to call, ``rank`` and ``world`` whom to play, ``epochs`` how many times to
iterate, ``set_epoch`` whether to tell it the epoch, ``most`` how many samples to take at most.

There is no job: torch's own "fake" backend stands in for a process group, so that a sampler gets
the rank and the world size that it asks for. A dataset with indices is never read: its loader's
sampler is iterated. A stream has to be; its samples are told apart by their content.

With ``live`` this process is a rank of a real job, which a launcher has started: the loader is
iterated as training would, and what its dataset is asked for goes to rank 0, which answers for all.
"""

import os
import sys

if sys.path and sys.path[0] == "":
    del sys.path[0]

CHANNEL = os.dup(1)
os.dup2(2, 1)

import hashlib  # noqa: E402
import importlib.util  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import traceback  # noqa: E402
from importlib import import_module  # noqa: E402

TYPE_CHECKING = False  # typing would have to be imported
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Foreign = Any  # what belongs to the user's program may be anything

MOST_LABELS = 1000000
LONGEST = 2000
DEEPEST = 8


def say(**answer: "object") -> None:
    """Write one line of the answer."""
    os.write(CHANNEL, (json.dumps(answer) + "\n").encode("ascii"))


def play(rank: int, world: int) -> None:
    """Make this process look like *rank* of *world*, for torch and for the environment."""
    given = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": world,
        "GROUP_RANK": 0,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": 29500,
    }
    os.environ.update({name: str(value) for name, value in given.items()})
    torch = import_module("torch")  # type: Foreign
    dist = import_module("torch.distributed")  # type: Foreign
    if not torch.cuda.is_available():
        torch.cuda.set_device = lambda *_: None
    if not dist.is_available():
        return
    try:
        fake = import_module("torch.testing._internal.distributed.fake_pg")
        dist.init_process_group("fake", rank=rank, world_size=world, store=fake.FakeStore())
    except (ImportError, ValueError, RuntimeError):  # an older torch
        dist.is_initialized = lambda: True
        dist.get_rank = lambda *_, **__: rank
        dist.get_world_size = lambda *_, **__: world
        dist.barrier = lambda *_, **__: None
    dist.init_process_group = lambda *_, **__: None
    dist.destroy_process_group = lambda *_, **__: None


def load(file: str) -> "Foreign":
    """Import the module *file* by its own name, as a program that lies beside it would."""
    folder, name = os.path.split(os.path.abspath(file))
    sys.path.insert(0, folder)
    sys.argv = [file]
    stem = os.path.splitext(name)[0]
    spec = importlib.util.spec_from_file_location(stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module


def made(module: "Foreign", name: str, rank: int, world: int) -> "Foreign":
    """Return what *name* of *module* is, or returns when it is called."""
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found) or hasattr(found, "__iter__"):
        return found
    known = {
        "rank": rank,
        "local_rank": rank,
        "process_index": rank,
        "world_size": world,
        "num_replicas": world,
        "world": world,
        "num_processes": world,
    }
    wanted = inspect.signature(found).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    lacking = [
        p.name
        for p in wanted
        if p.default is p.empty and p.kind not in kinds and p.name not in known
    ]
    if lacking:
        raise TypeError(
            "%s() needs %s; only rank and world_size can be given: write a function that takes "
            "nothing else" % (name, ", ".join(lacking))
        )
    return found(**{p.name: known[p.name] for p in wanted if p.name in known})


def picked(value: "Foreign") -> "Foreign":
    """Return the first loader or sampler in *value*."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            if hasattr(item, "batch_sampler") or hasattr(item, "sampler"):
                return item
        return value[0] if value and hasattr(value[0], "__iter__") else value
    return value


def tell_epoch(value: "Foreign", epoch: int) -> None:
    """Tell the epoch to whatever in *value* wants to know it."""
    seen = set()
    waiting = [value]
    while waiting:
        at = waiting.pop()
        if at is None or id(at) in seen:
            continue
        seen.add(id(at))
        if callable(getattr(at, "set_epoch", None)):
            at.set_epoch(epoch)
        parts = ("sampler", "batch_sampler", "base_dataloader")
        waiting.extend(getattr(at, name, None) for name in parts)


def share_order(value: "Foreign", epoch: int) -> None:
    """Do what accelerate does before each epoch: give all ranks the random state of rank 0."""
    kinds = getattr(value, "rng_types", None) or ()
    generator = getattr(value, "synchronized_generator", None)
    if generator is not None and "generator" in kinds:
        generator.manual_seed(epoch)
    if "torch" in kinds:
        import_module("torch").manual_seed(epoch)


def streams(loader: "Foreign") -> bool:
    """Tell whether *loader* iterates a stream, which has no indices."""
    kind = import_module("torch.utils.data").IterableDataset
    return isinstance(getattr(loader, "dataset", None), kind)


def batches(loader: "Foreign") -> "Iterator[list[Foreign]]":
    """Yield the samples of each batch: indices, or what tells samples of a stream apart."""
    if streams(loader):
        for batch in loader:
            yield [mark(item) for item in items(batch)]
    elif getattr(loader, "batch_sampler", None) is not None:
        for batch in loader.batch_sampler:
            yield [int(i) for i in batch]
    elif getattr(loader, "sampler", None) is not None and hasattr(loader, "dataset"):
        for index in loader.sampler:
            yield [int(index)]
    else:
        for entry in loader:
            yield [int(i) for i in entry] if isinstance(entry, (list, tuple)) else [int(entry)]


def items(batch: "Foreign") -> "list[Foreign]":
    """Return the samples that are collated in *batch*."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        first = batch[0] if batch else ()
        return items(first) if hasattr(first, "shape") else list(batch)
    if hasattr(batch, "shape") and len(batch.shape):
        return [batch[i] for i in range(batch.shape[0])]
    return [batch]


def mark(item: "Foreign") -> "Foreign":
    """Return a number or a hash by which a sample is known again."""
    if isinstance(item, int):
        return item
    if hasattr(item, "tolist"):
        item = item.tolist()
        while isinstance(item, list) and len(item) == 1:
            item = item[0]
        if isinstance(item, int):
            return item
    return hashlib.sha1(repr(item).encode("utf-8", "replace")).hexdigest()[:16]  # noqa: S324 - no secret


def labels(loader: "Foreign") -> "list[str] | None":
    """Return the classes of the dataset where it keeps them as a list."""
    dataset = getattr(loader, "dataset", None)
    for name in ("targets", "labels"):
        found = getattr(dataset, name, None)
        if found is not None and hasattr(found, "__len__") and len(found) <= MOST_LABELS:
            plain = found.tolist() if hasattr(found, "tolist") else list(found)
            if all(isinstance(label, (int, str)) for label in plain):
                return [str(label) for label in plain]
    return None


def facts(loader: "Foreign") -> "dict[str, Foreign]":
    """Return what of *loader* explains how it deals out."""
    inner = getattr(loader, "base_dataloader", loader)
    found = {"type": type(loader).__name__, "stream": streams(loader)}  # type: dict[str, Foreign]
    sampler = getattr(loader, "batch_sampler", None)
    chain = []  # type: list[str]
    while sampler is not None and len(chain) < DEEPEST:
        chain.append(type(sampler).__name__)
        sampler = getattr(sampler, "batch_sampler", None) or getattr(sampler, "sampler", None)
    found["samplers"] = chain
    found["prepared"] = type(loader).__module__.startswith("accelerate.")
    found["workers"] = getattr(inner, "num_workers", 0)
    if type(loader).__name__ == "DataLoaderDispatcher":
        found["dispatch"] = {
            "split_batches": bool(loader.split_batches),
            "drop_last": bool(loader._drop_last),  # noqa: SLF001 - it has no other name
        }
    size = getattr(inner, "batch_size", None)
    if size is None:
        size = getattr(getattr(loader, "batch_sampler", None), "batch_size", None)
    found["batch_size"] = size
    found["drop_last"] = any(
        bool(getattr(part, "drop_last", False))
        for part in (loader, inner, getattr(loader, "sampler", None), sampler)
    )
    try:
        found["length"] = len(loader.dataset)
    except (AttributeError, TypeError):
        found["length"] = None
    return found


def join() -> "Foreign":
    """Meet the other ranks, unless the user's program has; return a group to speak in."""
    dist = import_module("torch.distributed")  # type: Foreign
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return dist.new_group(backend="gloo")


class Asked:
    """A dataset whose samples come with the indices that were asked for."""

    def __init__(self, dataset: "Foreign", *, alone: bool) -> None:
        self.dataset = dataset
        self.alone = alone

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: "Foreign") -> "Foreign":
        if self.alone:  # nothing collates: an index, or those of a batch
            return numbers(index), self.dataset[index]
        return index, self.dataset[index]

    def __getattr__(self, name: str) -> "Foreign":
        if name.startswith("__") or name == "dataset":
            raise AttributeError(name)
        return getattr(self.dataset, name)


class Collated:
    """The user's own collating, of samples that come with their indices."""

    def __init__(self, collate: "Foreign") -> None:
        self.collate = collate

    def __call__(self, items: "list[Foreign]") -> "Foreign":
        """Collate, as the fetcher of a loader asks for it."""
        return numbers([i for i, _ in items]), self.collate([sample for _, sample in items])


def numbers(index: "Foreign") -> "Foreign":
    """Return indices as a tensor: accelerate cuts and joins nothing else."""
    return import_module("torch").as_tensor(index).reshape(-1)


def watch(loader: "Foreign") -> None:
    """Have the dataset of *loader* tell what it is asked for."""
    base = getattr(loader, "base_dataloader", None)
    inner = base or getattr(loader, "_dataloader", loader)  # type: Foreign
    alone = getattr(inner, "batch_sampler", None) is None
    found, collate = Asked(inner.dataset, alone=alone), Collated(inner.collate_fn)
    for part in (loader, inner):  # a loader may keep what its inner one has
        if "dataset" in part.__dict__:
            part.__dict__["dataset"] = found
        if not alone and "collate_fn" in part.__dict__:
            part.__dict__["collate_fn"] = collate


def live(options: "dict[str, Foreign]") -> None:
    """Iterate the loader as a rank of a real job; rank 0 answers for all."""
    say(stage="import")
    module = load(options["file"])
    say(stage="call")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    loader = picked(made(module, options["name"], rank, world))
    group = join()
    about = facts(loader)
    about.pop("dispatch", None)  # what comes out is what each rank gets
    say(stage="iterate", loader=about, labels=labels(loader) if rank == 0 else None)
    stream = streams(loader)
    if not stream:
        watch(loader)
    for epoch in range(options["epochs"]):
        if options["set_epoch"]:
            tell_epoch(loader, epoch)
        found, left = [], options["most"]
        for batch in loader:
            found.append([mark(i) for i in items(batch)] if stream else batch[0].tolist())
            left -= len(found[-1])
            if left < 0:
                raise RuntimeError("more than %d samples in an epoch" % options["most"])
        every = [None] * world  # type: list[Foreign]
        import_module("torch.distributed").all_gather_object(every, found, group=group)
        if rank == 0:
            say(**{"epoch%d" % epoch: every})


def main() -> None:
    """Answer."""
    if json.loads(sys.argv[1]).get("live"):
        return live(json.loads(sys.argv[1]))
    options = json.loads(sys.argv[1])
    rank, world = options["rank"], options["world"]
    play(rank, world)
    say(stage="import")
    module = load(options["file"])
    say(stage="call")
    loader = picked(made(module, options["name"], rank, world))
    say(stage="iterate", loader=facts(loader), labels=labels(loader) if rank == 0 else None)
    if type(loader).__name__ == "DataLoaderDispatcher":
        loader = loader.base_dataloader
    for epoch in range(options["epochs"]):
        if options["set_epoch"]:
            tell_epoch(loader, epoch)
        share_order(loader, epoch)
        found, left = [], options["most"]
        for batch in batches(loader):
            found.append(batch)
            left -= len(batch)
            if left < 0:
                raise RuntimeError("more than %d samples in an epoch" % options["most"])
        say(**{"epoch%d" % epoch: found})
    return None


def answer() -> None:
    """Answer, or say what stood in the way."""
    try:
        main()
        say(done=True)
    except BaseException as error:
        last = traceback.format_exc()[-LONGEST:]
        say(error="%s: %s" % (type(error).__name__, str(error)[:LONGEST]), trace=last, done=True)


if __name__ == "__main__":
    answer()
    os._exit(0)
