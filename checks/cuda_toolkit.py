"""A CUDA toolkit on the machine, if there is one, is of the CUDA major of torch.

How it shows: "The detected CUDA version (11.8) mismatches the version that was used to compile
PyTorch (12.8)" when an extension such as flash-attn is built.

Why: the wheels of torch bring their own CUDA runtime, and importing or running torch never looks at
a toolkit. Only compiling an extension uses nvcc, which has to be of the same CUDA major then. A
toolkit that is absent, older or newer is no fault: this is worth knowing and nothing more.

The fix, when something is to be compiled, is CUDA_HOME set to a toolkit of torch's CUDA. Source:
torch/utils/cpp_extension.py, _check_cuda_version.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import gpu, steps
from torchdoctor.facts import Build, Expectation, Symptom, Toolkit, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding

FAMILY = "system"
FINDS = ("toolkit-mismatch",)


def check(
    torch: Build | Unknown | None,
    toolkits: tuple[Toolkit, ...] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
) -> Iterator[Finding]:
    """Read what a build said, else compare the majors of the toolkits with the one of torch."""
    if said := gpu.symptom(symptoms, "toolkit-differs", "nvcc-gpu-unsupported"):
        yield _of_build(said)
        return
    if expectation.profile == "build":
        return  # build-toolkit looks closer
    if isinstance(torch, Unknown) or isinstance(toolkits, Unknown):
        raise CannotTell("torch or the toolkits are not known")
    known = [toolkit for toolkit in toolkits if toolkit.release]
    cuda = gpu.cuda(torch) if torch else None
    if cuda is None or not known:
        return
    major = cuda.partition(".")[0]
    if any((toolkit.release or "").partition(".")[0] == major for toolkit in known):
        return
    found = ", ".join(_named(toolkit) for toolkit in known)
    yield Finding(
        "toolkit-mismatch",
        "note",
        f"The toolkit here is {found} and torch was built with CUDA {cuda}; that matters"
        " only when an extension is compiled.",
        (
            Evidence("toolkits", found, known[0].source),
            Evidence("torch.cuda", cuda, "torch/version.py"),
        ),
    )


def _named(toolkit: Toolkit) -> str:
    """Return the release of *toolkit* and, where it is known, its place."""
    return f"CUDA {toolkit.release}" + (f" in {toolkit.path}" if toolkit.path else "")


def _of_build(said: Symptom) -> Finding:
    """Return the finding where something was compiled and the toolkit did not do."""
    has, wants = said.values.get("toolkit"), said.values.get("torch")
    target = said.values.get("target", "")
    summary = f"nvcc does not know {target}: the toolkit is older than the GPU."
    if has:
        summary = f"The toolkit is CUDA {has} and torch was built with CUDA {wants}; they have to "
        summary += "be of one major to compile an extension."
    return Finding(
        "toolkit-mismatch",
        "warning",
        summary,
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (steps.compiling.toolkit(wants),),
    )
