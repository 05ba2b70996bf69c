"""Whether the conda packages around torch come from one channel.

Packages of different channels are built with different compilers, C++ ABIs and CUDA packages: a
torchvision from conda-forge does not fit a pytorch from the channel ``pytorch``, and a pytorch
from conda-forge wants the ``mkl`` and the CUDA libraries of conda-forge. It shows as undefined
symbols, as ``operator torchvision::nms does not exist``, or as two OpenMP runtimes.

``conda list`` has the channel in its last column. The channel ``pytorch`` (which ended with torch
2.5.1) was made to stand on defaults or conda-forge, and on ``nvidia``: those together are in order.
What lies below torch is told only while torch is not known to import.

The fix is to take the odd ones from the channel of pytorch, with ``CHANNEL::NAME``.

Sources: https://conda-forge.org/docs/user/tipsandtricks/,
https://pytorch.org/get-started/previous-versions/, https://github.com/pytorch/pytorch/issues/138506
"""

from collections.abc import Iterator

from torchdoctor import conda_steps, steps, trials
from torchdoctor.facts import Conda, CondaPackage, Facts, ImportTrial, Unknown
from torchdoctor.model import Evidence, Finding
from torchdoctor.tables import releases

FAMILY = "environment"
FINDS = ("conda-channel-mix",)

COMPANIONS = ("torchvision", "torchaudio")
BELOW = ("mkl", "intel-openmp", "cudatoolkit", "cudnn", "nccl", "cuda-cudart", "libcublas")


def check(conda: Conda | None, trial: ImportTrial | Unknown, facts: Facts) -> Iterator[Finding]:
    """Compare the channels of the packages around pytorch with pytorch's own."""
    torch = _named(conda, ("pytorch",))
    if not torch:
        return
    home = conda_steps.channel(torch[0].channel)
    looked_at: tuple[str, ...] = COMPANIONS
    if home != "pytorch" and not trials.works(trial):
        looked_at += BELOW
    odd = [p for p in _named(conda, looked_at) if conda_steps.channel(p.channel) != home]
    if not odd:
        return
    said = ", ".join(f"{p.name} {p.version} from {conda_steps.channel(p.channel)}" for p in odd[:4])
    specs = [f"{home}::{p.name}{_wanted(p.name, torch[0].version)}" for p in odd]
    yield Finding(
        "conda-channel-mix",
        "error" if trials.failed(trial) else "warning",
        f"pytorch {torch[0].version} is from the channel {home}, but {said}: built with other "
        "compilers and libraries, they need not fit.",
        tuple(
            Evidence(f"conda.{p.name}", f"{p.version} {p.channel}", "conda-meta")
            for p in (*torch, *odd)
        )
        + trials.evidence(trial),
        (
            conda_steps.install(
                facts,
                *specs,
                why=f"The stack is then of one channel, {home}.",
                effect=conda_steps.changed(channel={p.name: torch[0].channel for p in odd}),
                cost=steps.COMPANION * len(specs),
            ),
        ),
        confidence="likely",
    )


def _named(conda: Conda | None, names: tuple[str, ...]) -> list[CondaPackage]:
    packages = conda.packages if conda else ()
    return [p for p in packages if p.name in names and p.channel not in ("", "pypi")]


def _wanted(name: str, torch: str) -> str:
    """Return the version to ask for: a companion's of that torch, any of what lies below."""
    if name not in COMPANIONS:
        return ""
    version = releases.companions(torch)[COMPANIONS.index(name)]
    return f"={version}" if version else ""
