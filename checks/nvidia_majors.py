"""Whether nvidia wheels of two CUDA majors write the same library file.

The wheels of CUDA 11, 12 and 13 for NCCL, cuDNN, cuSPARSELt, NVSHMEM and CUPTI unpack into one
folder (``nvidia/nccl/lib/libnccl.so.2``), so the one that was installed last is loaded, whatever
torch needs: ``undefined symbol: ncclMemFree``, ``cuDNN version incompatibility``. Two CUDA builds
of torch after each other leave that behind, and so do tensorflow or cupy of another CUDA.

It is told only when torch needs one of the two. With a torch that imports it is a warning.

The fix is to uninstall the ones that torch does not need, then to reinstall the ones it does: the
uninstall takes the shared file along. A package that needs the others wants an environment of
its own.

Sources: file lists of the wheels, https://github.com/rwth-i6/returnn/issues/1802
"""

from collections.abc import Collection, Iterator
from itertools import permutations

from torchdoctor import installers, nvidia, steps, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    ImportTrial,
    Interpreter,
    Platform,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import Evidence, Finding
from torchdoctor.tables import builds, libraries

FAMILY = "files"
FINDS = ("nvidia-wheels-mixed",)
AFTER = ("torch-present",)

LOADED = frozenset(("nccl", "cudnn", "cusparse"))
"""Families of symbols whose library wheels of several majors write to one place."""
Mixed = tuple[Distribution, Distribution, str]
"""The wheel that torch needs, the one it does not, and the file that both write."""


def check(
    torch: Build | Unknown | None,
    platform: Platform | Unknown,
    interpreter: Interpreter | Unknown,
    distributions: tuple[Distribution, ...],
    trial: ImportTrial | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the files of each two wheels, of which torch needs one."""
    if torch is None or (isinstance(platform, Platform) and platform.system != "linux"):
        return
    if isinstance(torch, Unknown):
        mixed = list(_told(symptoms, distributions))
    elif torch.distribution is None or isinstance(platform, Unknown):
        return
    elif isinstance(interpreter, Unknown):
        mixed = list(_mixed((), torch, distributions))
    else:
        asked = nvidia.asked(torch, distributions, platform, interpreter)
        mixed = list(_mixed(asked, torch, distributions))
    if mixed:
        yield _finding(mixed, trial, facts)


def _finding(mixed: list[Mixed], trial: ImportTrial | Unknown, facts: Facts) -> Finding:
    mine, theirs, file = mixed[0]
    right = {m.name: installers.Package(m.name, m.version) for m, _, _ in mixed}
    return Finding(
        "nvidia-wheels-mixed",
        "error" if trials.failed(trial) else "warning",
        f"{theirs.name} {theirs.version} and {mine.name} {mine.version} both write {file}: torch "
        f"needs {mine.name}, and the one installed last is loaded.",
        tuple(
            Evidence("distributions", f"{d.name} {d.version}", d.folder)
            for pair in mixed
            for d in pair[:2]
        )
        + trials.evidence(trial),
        (
            steps.clean_install(
                facts,
                right.values(),
                gone=dict.fromkeys(t.name for _, t, _ in mixed),
                why="The uninstall takes the shared file along, so torch's own comes back last.",
            ),
        ),
    )


def _told(
    symptoms: tuple[Symptom, ...] | Unknown, distributions: tuple[Distribution, ...]
) -> Iterator[Mixed]:
    """Yield the newer wheel and the older where a message says that the loaded file is too old.

    torch is not known then; a symbol that is absent is one that came later.
    """
    known = items_of(symptoms)
    families = {s.values.get("family", "") for s in known if s.name == "undefined-symbol"}
    if not families & LOADED:
        return
    for theirs, mine in permutations(distributions, 2):
        shared = libraries.same_files(mine.name, theirs.name)
        if shared and theirs.name < mine.name and any(f in shared[0] for f in families & LOADED):
            yield mine, theirs, shared[0]


def _mixed(
    asked: Collection[str], torch: Build, distributions: tuple[Distribution, ...]
) -> Iterator[Mixed]:
    """Yield each pair of wheels that write one file, of which one is right.

    Right is what torch asks for; in a list without metadata, what its CUDA major names.
    """
    cuda = torch.cuda or builds.cuda_of(torch.tag or "")
    right = f"-cu{cuda.partition('.')[0]}" if cuda else None
    ours = [d for d in distributions if d.name.startswith("nvidia-")]
    for mine, theirs in permutations(ours, 2):
        shared = libraries.same_files(mine.name, theirs.name)
        if not shared or mine.name == theirs.name or theirs.name in asked:
            continue
        if mine.name in asked or (not asked and right and mine.name.endswith(right)):
            yield mine, theirs, shared[0]
