"""Whether triton is of the release that this torch needs.

``torch.compile`` on a GPU hands its code to triton, and the two share interfaces that change with
every release: ``cannot import name 'AttrsDescriptor' from 'triton.compiler.compiler'``,
``'triton' has no attribute ...``. Linux wheels of torch pin one triton; packages such as
vllm or unsloth, or an upgrade, bring another. On Windows the package is ``triton-windows``, which
torch does not name: its first two numbers have to be those of the triton of that torch release.

torch itself imports and runs without, so this is a warning. A CPU build needs none. A triton that
is absent is nvidia-wheels-missing.

The fix is the triton that torch pins.

Sources: METADATA of the torch wheels, https://github.com/woct0rdho/triton-windows
"""

from collections.abc import Iterator

from packaging.requirements import Requirement

from torchdoctor import requirements, steps
from torchdoctor.facts import Build, Distribution, Facts, Interpreter, Platform
from torchdoctor.model import CannotTell, Evidence, Finding
from torchdoctor.tables import releases

FAMILY = "versions"
FINDS = ("triton-version-mismatch",)
AFTER = ("torch-present",)


def check(
    torch: Build | None,
    distributions: tuple[Distribution, ...],
    platform: Platform,
    interpreter: Interpreter,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare each triton that is installed with what torch asks for."""
    if torch is None:
        return
    marks = requirements.environment(platform, interpreter)
    asked = _asked(torch, marks)
    for triton in distributions:
        wanted: Requirement | None
        if triton.name == "triton-windows" and torch.cuda:
            wanted = _on_windows(torch, triton)
        else:
            wanted = asked.get(triton.name)
        if wanted is None or requirements.accepts(wanted.specifier, triton.version) is not False:
            continue
        version = requirements.version_in(wanted.specifier)
        label = (torch.distribution or torch).version.partition("+")[2] or None
        yield Finding(
            "triton-version-mismatch",
            "warning",
            f"{triton.name} {triton.version} is installed and torch {torch.version} needs "
            f"{wanted.specifier}, so torch.compile fails on the GPU.",
            (
                Evidence("distributions", f"{triton.name} {triton.version}", triton.folder),
                Evidence("torch.distribution.requires", str(wanted), "METADATA"),
            ),
            (
                steps.install_requirements(
                    facts,
                    {triton.name: (f"{triton.name}{wanted.specifier}", version)},
                    why=f"It is the triton of torch {torch.public}.",
                )
                if triton.name in ("triton", "triton-windows")
                else steps.align(
                    facts,
                    {triton.name: version},
                    steps.index_for(facts, label),
                    why=f"It is the triton of torch {torch.public}.",
                ),
            ),
        )


def _asked(torch: Build, marks: dict[str, str]) -> dict[str, Requirement]:
    if torch.distribution is None:
        return {}
    found = requirements.needed(torch.distribution, marks)
    return {requirements.name(r): r for r in found if "triton" in r.name}


def _on_windows(torch: Build, triton: Distribution) -> Requirement:
    release = releases.torch_release(torch.version)
    if release is None:
        raise CannotTell(f"the tables have no row for torch {torch.version}")
    pinned = requirements.parse(f"triton{release.triton.get('linux_x86_64', '')}")
    first = requirements.version_in(pinned.specifier) if pinned else "0"
    if first == "0":
        raise CannotTell(f"which triton torch {torch.version} needs is not on record")
    major, minor, *_ = first.split(".")
    return Requirement(f"{triton.name}=={major}.{minor}.*")
