"""All ranks call the same collectives, in the same order, and in time.

How it shows: a run that stops without a word at 100 % GPU; "Watchdog caught collective operation
timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, ...)"; "Detected mismatch between collectives on
ranks"; gloo's "op.preamble.length <= op.nbytes"; "Message truncated".

Why: a collective waits until every rank has called it. A rank with fewer batches leaves first
(uneven-steps-hang). A rank that calls another collective, or with another size, is waited for in
vain (collective-mismatch): a metric or a validation under ``if rank == 0``, keys that differ. A
rank that is still preparing data is only late, and the others' patience is 10 minutes with NCCL, 30
before torch 2.1 and with gloo (slow-rank-timeout).

How to tell: compare OpType and NumelIn at the same SeqNum: different ones are a mismatch. Equal
ones on all ranks but one: that one is late or gone. A time-out at SeqNum=1 on all ranks is the
network or peer traffic. ``TORCH_DISTRIBUTED_DEBUG=DETAIL`` names both collectives of a mismatch;
TORCH_FR_BUFFER_SIZE=2000 keeps what each rank did last.

The fix: the same number of batches on each rank (DistributedSampler, drop_last, the same split, or
``with model.join():``); collectives outside of rank guards; data prepared before
init_process_group, or its ``timeout=`` raised.

Sources: https://github.com/Lightning-AI/pytorch-lightning/issues/9851,
https://github.com/IGNF/myria3d/issues/123, https://github.com/pytorch/pytorch/issues/118369
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Confidence, Evidence, Finding, Step

FAMILY = "use"
FINDS = ("uneven-steps-hang", "collective-mismatch", "slow-rank-timeout")

MISMATCH = (
    "collective-mismatch",
    "gloo-size-mismatch",
    "nccl-collective-mismatch",
)
LATE = ("first-collective-missed", "monitored-barrier-failed", "watchdog-timeout")
UNEVEN = ("uneven-batches", "uneven-join")
SETTLED = (*LATE, *UNEVEN, "watchdog-took-down", "watchdog-stuck", "hang-told", "work-in-progress")
ELSEWHERE = (
    *("rank-exception", "torchrun-root-cause", "loader-killed", "host-oom", "shm-no-space"),
    *(
        "p2p-off-helps",
        "p2p-off-run",
        "p2p-in-use",
        "acs-redirects",
        "ib-completion-error",
        "net-plugin-failed",
    ),
    *("nccl-versions-differ", "nccl-address-family", "cuda-out-of-memory"),
)
"""What explains a time-out better than how the ranks call their collectives."""
DETAIL = "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun --standalone --nproc-per-node=gpu train.py"
EPOCHS = ("epoch", "training", "train", "validat", "step", "iter")


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Compare what the ranks called, how often, and who was waited for."""
    if mismatch := distributed.first(symptoms, *MISMATCH) or _different(symptoms):
        yield _mismatch(mismatch, "certain")
        return
    truncated = distributed.first(symptoms, "nccl-message-truncated")
    if truncated and not _versions(symptoms):
        yield _mismatch(truncated, "likely")
        return
    counts = _counts(symptoms)
    joined = distributed.first(symptoms, "uneven-join")
    if joined or len(set(counts.values())) > 1:
        yield _uneven(symptoms, counts, joined)
        return
    waited = distributed.told(symptoms, *LATE)
    if not waited or distributed.told(symptoms, *ELSEWHERE):
        return
    if apart := _apart(symptoms):
        yield _out_of_step(symptoms, apart)
        yield _or(
            "collective-mismatch",
            "Or the ranks call different collectives, one more of them than the other.",
            waited[0],
            _even(),
            before="uneven-steps-hang",
        )
    else:
        yield from _late(symptoms, waited)


def _different(symptoms: tuple[Symptom, ...]) -> Symptom | None:
    """Return that two ranks timed out in different collectives of one number."""
    known: dict[str, tuple[str, str]] = {}
    for said in distributed.told(symptoms, "watchdog-timeout"):
        if "seq" not in said.values:
            continue
        called = said.values["op"], said.values.get("numel", "")
        if known.setdefault(said.values["seq"], called) != called:
            return said
    return None


def _apart(symptoms: tuple[Symptom, ...]) -> dict[str, int]:
    """Return the collective in which each rank waits, where they wait in different ones."""
    found: dict[str, int] = {}
    for said in distributed.told(symptoms, "watchdog-timeout"):
        number = int(said.values.get("seq", "-1"))
        for rank in said.values.get("rank", "").split(","):
            if rank and number >= 0:
                found[rank] = min(number, found.get(rank, number))
    return found if len(set(found.values())) > 1 else {}


def _out_of_step(symptoms: tuple[Symptom, ...], apart: dict[str, int]) -> Finding:
    slow, fast = min(apart, key=apart.__getitem__), max(apart, key=apart.__getitem__)
    return Finding(
        "uneven-steps-hang",
        "error",
        f"Rank {slow} waits in collective {apart[slow]} and rank {fast} in {apart[fast]}: the ranks"
        " do not take the same steps.",
        distributed.seen(*distributed.told(symptoms, "watchdog-timeout")[:2]),
        (_even(),),
        confidence="likely",
        where={"rank": int(slow)},
    )


def _versions(symptoms: tuple[Symptom, ...]) -> bool:
    told = distributed.told(symptoms, "nccl-version-line", "nccl-package")
    return len({s.values["version"] for s in told}) > 1


def _counts(symptoms: tuple[Symptom, ...]) -> dict[str, str]:
    """Return how many batches each rank has, as they are told."""
    found = {}
    for said in distributed.told(symptoms, "uneven-batches"):
        for rank in said.values["rank"].split(","):
            found[rank] = said.values["count"]
    return found


def _or(name: str, summary: str, said: Symptom, step: Step, *, before: str) -> Finding:
    """Return what it may be, too: the same story as *before*, whose step decides."""
    return Finding(
        name,
        "warning",
        summary,
        distributed.seen(said),
        (step,),
        confidence="possible",
        because_of=(before,),
    )


def _mismatch(said: Symptom, confidence: Confidence) -> Finding:
    return Finding(
        "collective-mismatch",
        "error",
        "The ranks call different collectives, or with different sizes, and wait for each other.",
        distributed.seen(said),
        (
            distributed.in_script(
                "same-collectives",
                "Run once with TORCH_DISTRIBUTED_DEBUG=DETAIL, which names the two collectives, and"
                " take the one that not all ranks call out of its condition (if rank == 0, a key"
                " that not all have)",
                why="A collective waits until every rank has called it.",
                settles=(*MISMATCH, "nccl-message-truncated", *SETTLED),
                bash=(DETAIL,),
            ),
        ),
        confidence=confidence,
    )


def _uneven(
    symptoms: tuple[Symptom, ...], counts: dict[str, str], joined: Symptom | None
) -> Finding:
    told = ", ".join(f"rank {rank} has {count}" for rank, count in list(counts.items())[:4])
    return Finding(
        "uneven-steps-hang",
        "error",
        "The ranks have different numbers of batches"
        + (f" ({told})" if told else "")
        + ", and those with more wait for ever in the next collective.",
        distributed.seen(joined, *distributed.told(symptoms, "uneven-batches")[:4]),
        (_even(),),
        confidence="certain" if joined else "likely",
    )


def _even() -> Step:
    return distributed.in_script(
        "same-number-of-batches",
        "Give every rank the same number of batches: DistributedSampler (it pads), drop_last, the"
        " same seed for the split; or run the loop under `with model.join():`",
        why="A rank that has no batch left calls no collective any more.",
        settles=SETTLED,
    )


def _late(symptoms: tuple[Symptom, ...], waited: tuple[Symptom, ...]) -> Iterator[Finding]:
    first = waited[0]
    running = distributed.told(symptoms, "work-in-progress")
    busy = next((s for s in running if not _is_epoch(s)), None)
    limit = next((s.values["timeout"] for s in waited if s.values.get("timeout")), "")
    seen = distributed.seen(first, *waited[1:2], busy)
    missing = first.values.get("missing", "").strip() or first.values.get("root", "")
    if busy:
        done, whole = busy.values["done"], busy.values["all"]
        yield _slow(seen, f"A rank is busy with {busy.values['what']} ({done} of {whole})", limit)
    elif missing:
        yield _slow(seen, f"Rank {missing} did not come to a collective", limit)
    else:
        late = _slow(seen, "One rank did not come to a collective in time", limit, sure=False)
        yield late
        yield _or(
            "uneven-steps-hang",
            "Or a rank had fewer batches than the others and has left the loop.",
            first,
            late.steps[0],
            before="slow-rank-timeout",
        )


def _is_epoch(said: Symptom) -> bool:
    return said.values["what"].lower().startswith(EPOCHS)


def _slow(seen: tuple[Evidence, ...], who: str, limit: str, *, sure: bool = True) -> Finding:
    patience = f"{int(limit) // 60000} minutes" if limit else "the time-out"
    title = (
        "Prepare data before init_process_group (or in a run of its own), or raise its"
        " timeout=timedelta(hours=2)"
    )
    look = (
        "; where no rank is busy, TORCH_DISTRIBUTED_DEBUG=DETAIL shows which collective each calls"
    )
    return Finding(
        "slow-rank-timeout",
        "error",
        f"{who}, and the others gave up after {patience}.",
        seen,
        (
            distributed.in_script(
                "prepare-before-init",
                title if sure else title + look,
                why="A collective waits for the rank that is busy, for so long and no longer.",
                settles=SETTLED,
                bash=() if sure else (DETAIL,),
            ),
        ),
        confidence="likely" if sure else "possible",
    )
