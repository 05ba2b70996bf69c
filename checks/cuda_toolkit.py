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

from torchdoctor.facts import Build, Toolkit
from torchdoctor.model import Evidence, Finding

FAMILY = "system"
FINDS = ("toolkit-mismatch",)


def check(torch: Build | None, toolkits: tuple[Toolkit, ...]) -> Iterator[Finding]:
    """Compare the majors of the toolkits with the one of torch."""
    known = [toolkit for toolkit in toolkits if toolkit.release]
    if torch is None or not torch.cuda or not known:
        return
    major = torch.cuda.partition(".")[0]
    if any((toolkit.release or "").partition(".")[0] == major for toolkit in known):
        return
    found = ", ".join(f"CUDA {toolkit.release} in {toolkit.path}" for toolkit in known)
    yield Finding(
        "toolkit-mismatch",
        "note",
        f"The toolkit here is {found} and torch was built with CUDA {torch.cuda}; that matters"
        " only when an extension is compiled.",
        (
            Evidence("toolkits", found, known[0].source),
            Evidence("torch.cuda", torch.cuda, "torch/version.py"),
        ),
    )
