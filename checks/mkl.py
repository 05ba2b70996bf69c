"""Whether conda brought an MKL that this conda build of torch cannot be loaded with.

MKL 2024.1 dropped the function ``iJIT_NotifyEvent``, and conda builds of torch up to 2.2 link to
it: ``libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent``. They do not cap the version, so a fresh
``conda install pytorch==2.0.1`` takes the newest MKL.

Wheels from pip carry MKL inside and are never concerned. A torch that imports is in order.

The fix is ``mkl<2024.1`` in the same environment.

Sources: https://github.com/pytorch/pytorch/issues/123097
"""

from collections.abc import Iterator

from torchdoctor import conda_steps, steps, trials
from torchdoctor.facts import Conda, Facts, ImportTrial, Symptom, Unknown, items_of
from torchdoctor.model import CannotTell, Evidence, Finding
from torchdoctor.tables import neighbours

FAMILY = "versions"
FINDS = ("mkl-too-new",)

LAST_GOOD = "2024.0"


def check(
    conda: Conda | None,
    trial: ImportTrial | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare conda's MKL with the one that its torch needs."""
    mkl = conda.get("mkl") if conda else None
    torch = conda.get("pytorch") if conda else None
    if mkl is None or torch is None or "pypi" in (mkl.channel, torch.channel):
        return
    if trials.works(trial):
        return
    messages = items_of(symptoms)
    told = [s for s in messages if s.values.get("family") == "mkl"]
    breaks = neighbours.mkl_breaks(mkl.version, torch.version)
    if breaks is None and not told:
        raise CannotTell(f"whether pytorch {torch.version} needs an older MKL is not on record")
    if not breaks and not told:
        return
    yield Finding(
        "mkl-too-new",
        "error",
        f"MKL {mkl.version} no longer has iJIT_NotifyEvent, which conda's pytorch {torch.version} "
        "links to, so import torch fails.",
        (
            Evidence("conda.mkl", mkl.version, "conda-meta"),
            Evidence("conda.pytorch", f"{torch.version} {torch.channel}".strip(), "conda-meta"),
            *(Evidence("symptoms", s.text.strip()[:300], s.source) for s in told[:1]),
            *trials.evidence(trial),
        ),
        (
            conda_steps.install(
                facts,
                "mkl<2024.1",
                why=f"MKL {LAST_GOOD} still has the function.",
                effect=conda_steps.changed(version={"mkl": LAST_GOOD}),
                cost=steps.SMALL,
            ),
        ),
        confidence="certain" if told else "likely",
    )
