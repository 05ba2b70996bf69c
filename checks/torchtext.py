"""Whether torchtext is installed beside a torch that it never got a release for.

torchtext ended with 0.18.0, which was built for torch 2.3. Beside a newer torch its library does
not load (``libtorchtext.so: undefined symbol: _ZN5torch3jit17parseSchemaOrName...``), although its
metadata accepts any torch from 2.3.0 on. No newer torchtext exists, so upgrading it never helps.

A torchtext of another release beside torch 2.3 or older is ext-abi-mismatch.

The fix is to uninstall torchtext, when nothing imports it (datasets and tokenizers have moved to
other packages), or to stay on torch 2.3.1.

Sources: https://github.com/pytorch/text/issues/2272, https://github.com/pytorch/text (README)
"""

from collections.abc import Iterator

from torchdoctor import choose, requirements, steps
from torchdoctor.facts import Build, Distribution, Facts, Symptom, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Step
from torchdoctor.tables import neighbours

FAMILY = "versions"
FINDS = ("torchtext-abandoned",)
AFTER = ("torch-present",)

LAST_TORCH = "2.3.1"


def check(
    torch: Build | None,
    distributions: tuple[Distribution, ...],
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare torch with the last one that a torchtext was built for."""
    torchtext = next((d for d in distributions if d.name == "torchtext"), None)
    if torchtext is None or torch is None:
        return
    beyond = requirements.accepts(">=2.4.0.dev0", torch.public)
    if beyond is None:
        raise CannotTell(f"{torch.version} is no version that can be compared")
    if not beyond:
        return
    failed = [
        s
        for s in ([] if isinstance(symptoms, Unknown) else symptoms)
        if "torchtext" in s.values.get("file", "")
    ]
    yield Finding(
        "torchtext-abandoned",
        "error" if failed else "warning",
        f"torchtext {torchtext.version} cannot be loaded beside torch {torch.version}: it ended "
        f"with {neighbours.torchtext_last()}, built for torch 2.3.",
        (
            Evidence("distributions", f"torchtext {torchtext.version}", torchtext.folder),
            Evidence("torch.version", torch.version, "torch/version.py"),
            *(Evidence("symptoms", s.text.strip()[:300], s.source) for s in failed[:1]),
        ),
        tuple(_steps(facts)),
    )


def _steps(facts: Facts) -> Iterator[Step]:
    yield steps.uninstall(facts, "torchtext", why="No release of it fits this torch.")
    if choice := choose.choose(facts, release=LAST_TORCH):
        yield steps.change_build(
            facts, choice, why="It is the last torch that a torchtext was built for."
        )
