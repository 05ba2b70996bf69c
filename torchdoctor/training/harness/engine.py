"""The training itself: steps on all ranks that stay in step, whatever happens to one of them."""

from __future__ import annotations

import contextlib
import math
import signal
import statistics
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
import torch.distributed as dist  # type: ignore[import-not-found,unused-ignore]
from torch import nn
from torch.nn.parallel import DistributedDataParallel  # type: ignore[import-not-found,unused-ignore]

from . import data, state
from .events import Events


class RankError(RuntimeError):
    """What all ranks have agreed to end for, and the rank that it came from."""

    def __init__(self, rank: int, message: str) -> None:
        super().__init__(message)
        self.rank = rank


class Engine:
    """A model, its optimizer and its samples, on this rank."""

    def __init__(self, options: Namespace, events: Events, device: torch.device) -> None:
        self.options, self.events, self.device = options, events, device
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.folder = Path(options.dir) / "checkpoints"
        dtype = getattr(torch, options.dtype)
        torch.manual_seed(options.seed)  # the same weights everywhere, even before DDP sends them
        model = data.model(dtype, options.width, batch_norm=options.sync_bn)
        model = model.to(device)  # moved first, then wrapped
        if options.sync_bn:
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        ids = [device.index] if device.type == "cuda" else None
        self.model = DistributedDataParallel(model, device_ids=ids)
        torch.manual_seed(options.seed + 1 + self.rank)  # from here on each rank draws its own
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.lr)
        self.scaler = _scaler(device, enabled=options.amp == "fp16")
        self.samples = data.dataset(dtype)
        self.sampler = data.ShardedSampler(len(self.samples), self.rank, self.world, options.seed)
        self.loader = torch.utils.data.DataLoader(
            self.samples,
            options.batch,
            sampler=self.sampler,
            num_workers=options.workers,
            drop_last=True,  # each step has equally many samples: means of means stay means
            pin_memory=device.type == "cuda",
            generator=torch.Generator(),  # else each epoch takes a number from those of the model
        )
        self.step = self.epoch = self.consumed = 0
        self.stop = 0
        self.losses: list[float] = []
        self.draws: list[float] = []
        self.indices: list[list[int]] = []
        self.seconds: dict[str, list[float]] = {"wait": [], "step": []}
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)

    def settle(self) -> None:
        """Let DDP order its buckets before the first step; nothing is learned from it.

        It does so after the first backward pass, by the order in which gradients became ready, and
        sums over three ranks or more are rounded otherwise from then on: a run that is resumed
        would differ in the last bits from one that was not interrupted.
        """
        kept = {k: v.clone() for k, v in self.model.module.state_dict().items()}
        randoms = state.random_state()
        batch = next(iter(self.loader))
        for _ in range(2):
            self.gradients([batch])
            self.optimizer.zero_grad(set_to_none=True)
        self.model.module.load_state_dict(kept)
        state.set_random_state(randoms)

    def _asked_to_stop(self, number: int, frame: object) -> None:
        del frame
        self.stop = number

    # ---- the loop -------------------------------------------------------------------------------

    def run(self) -> None:
        """Train until all steps are done, or somebody asks one rank to stop."""
        while self.step < self.options.steps and not self.stop:
            self.sampler.set_epoch(self.epoch, self.consumed)
            self.loader.generator.manual_seed(self.options.seed + self.epoch)
            for batches in self._groups():
                self._one_step(batches)
                if self.step % self.options.save_every == 0 or self._is_over():
                    self.save()
                if self._is_over():
                    return
            self.epoch, self.consumed = self.epoch + 1, 0

    def _is_over(self) -> bool:
        return bool(self.stop) or self.step >= self.options.steps

    def _groups(self) -> Iterator[list[Any]]:
        """Yield as many batches as one step accumulates; the incomplete rest is left out."""
        many = self.options.accumulate
        if len(self.loader) < many:
            raise RankError(self.rank, f"rank {self.rank} has too few samples for a step")
        source = iter(self.loader)
        for _ in range(len(self.loader) // many):
            self.events.enter("data", self.step + 1)
            began = time.perf_counter()
            batches = [next(source) for _ in range(many)]
            self.seconds["wait"].append(time.perf_counter() - began)
            yield batches

    def _one_step(self, batches: list[Any]) -> None:
        began = time.perf_counter()
        loss = self.gradients(batches)
        self.scaler.unscale_(self.optimizer)  # before clipping: the limit is for true gradients
        nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        mean = self._agree(loss)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self._wait_for_device()
        self.step += 1
        self.consumed += sum(len(batch[2]) for batch in batches) * self.world
        self.losses.append(mean)
        self.indices.append([int(i) for batch in batches for i in batch[2]])
        self.draws.append(float(torch.rand(())))  # shows that a resumed run draws the same
        self.seconds["step"].append(time.perf_counter() - began)

    def gradients(self, batches: list[Any], *, sync: bool = True) -> float:
        """Add up the gradients of *batches*, the ranks' mean with the last one; return the loss."""
        total = 0.0
        for number, (x, y, _) in enumerate(batches, 1):
            self.events.enter("forward")
            last = sync and number == len(batches)
            with contextlib.nullcontext() if last else self.model.no_sync():
                with self._autocast():
                    output = self.model(x.to(self.device, non_blocking=True))
                target = y.to(self.device, non_blocking=True)
                loss = data.loss(output.to(target.dtype), target) / len(batches)
                self.events.enter("backward")
                self.scaler.scale(loss).backward()
            total += float(loss.item())
        return total

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.options.amp)
        return torch.autocast(self.device.type, kind) if kind else contextlib.nullcontext()

    def _agree(self, loss: float) -> float:
        """Tell all ranks how this one fares, before anybody changes the weights.

        Returns the mean loss. One rank's NaN would reach all others with the gradients, and one
        rank that stops alone would leave the others waiting: so all hear of it, and end together.
        """
        self.events.enter("agree")
        mine = torch.tensor([loss, float(self.stop)], dtype=torch.float64, device=self.device)
        every = [torch.zeros_like(mine) for _ in range(self.world)]
        dist.all_gather(every, mine)
        told = [one.tolist() for one in every]
        for rank, (value, _) in enumerate(told):
            if not math.isfinite(value):
                raise RankError(rank, f"the loss of rank {rank} is {value} in step {self.step + 1}")
        self.stop = int(max(stop for _, stop in told))
        mean: float = sum(value for value, _ in told) / self.world
        return mean

    def _wait_for_device(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    # ---- checkpoints ----------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint on rank 0; all ranks end if that fails."""
        self.events.enter("save")
        every: list[Any] = [None] * self.world
        dist.all_gather_object(every, state.random_state())
        fault = [""]
        if self.rank == 0:
            try:
                path = state.save(self.folder, self.step, self._content(every))
                self.events.say("saved", name=path.name, step=self.step)
            except OSError as error:
                fault = [f"the checkpoint of step {self.step} cannot be written: {error}"]
        dist.broadcast_object_list(fault, src=0)
        if fault[0]:
            raise RankError(0, fault[0])

    def _content(self, randoms: list[Any]) -> dict[str, Any]:
        return {
            "model": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "step": self.step,
            "epoch": self.epoch,
            "consumed": self.consumed,
            "seed": self.options.seed,
            "world": self.world,
            "batch": self.options.batch * self.options.accumulate * self.world,
            "random": randoms,
        }

    def resume(self) -> None:
        """Go on from the newest whole checkpoint, if there is one; rank 0 says which."""
        self.events.enter("load")
        told: list[Any] = [None, []]
        if self.rank == 0:
            path, passed = state.newest(self.folder)
            told = [str(path) if path else None, passed]
        dist.broadcast_object_list(told, src=0)
        for name in told[1] if self.rank == 0 else ():
            self.events.say("checkpoint-corrupt", name=name)
        if told[0] is None:
            return
        content = state.load(Path(told[0]), self.device)
        self.model.module.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.scaler.load_state_dict(content["scaler"])
        self.step, self.epoch = content["step"], content["epoch"]
        self.consumed, self.sampler.seed = content["consumed"], content["seed"]
        if content["world"] == self.world:
            mine = content["random"][self.rank]
            state.set_random_state({k: _to_cpu(v) for k, v in mine.items()})
        if self.rank == 0:
            self._say_resumed(content, Path(told[0]).name)

    def _say_resumed(self, content: dict[str, Any], name: str) -> None:
        self.events.say("resumed", name=name, step=self.step)
        batch = self.options.batch * self.options.accumulate * self.world
        if content["world"] != self.world or content["batch"] != batch:
            self.events.say(
                "world-size-changed",
                before=content["world"],
                after=self.world,
                batch_before=content["batch"],
                batch_after=batch,
            )

    # ---- what it costs --------------------------------------------------------------------------

    def measure(self, rounds: int) -> dict[str, float]:
        """Return the seconds of a step's gradients with and without the other ranks, in turn.

        Nothing is learned from these steps. The difference is what communication adds to a step,
        beyond what happens while gradients are still being computed.
        """
        self.events.enter("measure")
        batch = [next(iter(self.loader))] * self.options.accumulate
        taken: dict[bool, list[float]] = {True: [], False: []}
        for number in range(2 * rounds + 2):
            sync = number % 2 == 0
            dist.barrier()  # all begin together: what is measured is not a late rank
            self._wait_for_device()
            began = time.perf_counter()
            self.gradients(batch, sync=sync)
            self._wait_for_device()
            taken[sync].append(time.perf_counter() - began)
            self.optimizer.zero_grad(set_to_none=True)
        with_it, without = (statistics.median(taken[sync][1:]) for sync in (True, False))
        return {"with": with_it, "without": without}

    def digest(self) -> str:
        """Return a hash of everything that this rank has learned."""
        return state.digest(self.model.module.state_dict(), self.optimizer.state_dict()["state"])


def _to_cpu(value: object) -> object:
    return value.cpu() if isinstance(value, torch.Tensor) else value


def _scaler(device: torch.device, *, enabled: bool) -> torch.amp.GradScaler:
    """Return a scaler for fp16; one that does nothing for everything else."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device.type, enabled=enabled)
    return torch.cuda.amp.GradScaler(enabled=enabled and device.type == "cuda")
