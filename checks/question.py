"""A question in a few words is answered by what it mostly is, and by what decides.

How it shows: "sampler + shuffle", "hang", "set_epoch", "loss too smooth", typed without a message.

Why: a word is weak evidence. It is answered as a note: the causes that it mostly stands for, the
likeliest first, and the one command whose output decides. As soon as there is a message or a
listing, that is judged instead.

To have a finding: paste what the program printed, all of it and of every rank, or run
``torchdoctor check`` on the machine.

Source: torchdoctor/tables/symptoms_words.toml, each row with its own
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding
from torchdoctor.tables import symptoms as table

FAMILY = "use"
FINDS = (
    "antivirus-blocked",
    "app-control-blocked",
    "backend-unavailable",
    "batchnorm-not-synchronised",
    "clip-before-unscale",
    "collective-under-rank-guard",
    "conda-pip-mix",
    "container-no-gpu",
    "cpu-only-build",
    "cuda-init-before-fork",
    "data-parallel",
    "dataloader-too-many-workers",
    "deprecated-amp",
    "dll-symbol-missing",
    "dll-wrong-machine",
    "driver-missing",
    "empty-shard",
    "epoch-not-resumed",
    "evaluation-padding-counted",
    "evaluation-sampler-shuffles",
    "hardcoded-master-address",
    "host-oom-killed",
    "hostname-loopback",
    "import-order-dll-conflict",
    "iterable-not-sharded",
    "launcher-missing",
    "libomp140-missing",
    "libuv-missing",
    "load-without-map-location",
    "loader-not-sharded",
    "local-rank-arg",
    "local-rank-as-sampler-rank",
    "master-unreachable",
    "metric-not-gathered",
    "missing-set-epoch",
    "mkl-dll-not-found",
    "module-prefix-keys",
    "openmp-duplicate",
    "p2p-acs-iommu",
    "paging-file-too-small",
    "process-group-not-destroyed",
    "process-group-not-initialised",
    "rank-crashed-first",
    "rendezvous-port-in-use",
    "same-seed-on-every-rank",
    "sampler-and-shuffle",
    "sampler-drops-tail",
    "save-on-every-rank",
    "seedable-sampler-without-seed",
    "set-device-missing",
    "sharded-twice",
    "shm-too-small",
    "silent-single-rank-default",
    "slow-rank-timeout",
    "state-dict-of-wrapper",
    "torch-files-corrupt",
    "torch-stale-dll",
    "uneven-steps-hang",
    "unused-parameters",
    "vcredist-missing",
    "vcredist-too-old",
    "windows-long-path",
    "world-size-changed-on-resume",
    "wrong-socket-ifname",
)
ECHOES = True


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Say what the words mostly stand for."""
    said: set[str] = set()
    for asked in distributed.told(symptoms, table.ASKED):
        topic = table.topic(asked.values.get("topic", ""))
        for place, (name, says) in enumerate(topic.causes if topic else ()):
            if topic is None or name in said:
                continue
            said.add(name)
            yield Finding(
                name,
                "note",
                f"{says} To decide: {topic.decide}" if place == 0 else says,
                distributed.seen(asked),
                confidence="possible" if place else "likely",
            )
