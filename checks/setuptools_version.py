"""setuptools still has the pkg_resources that an old torch imports to build an extension.

How it shows: "ModuleNotFoundError: No module named 'pkg_resources'", from
``torch/utils/cpp_extension.py``, while an extension such as flash-attn or apex is built.

Why: torch up to 2.1.2 imports pkg_resources there, and setuptools 82 no longer has it. torch itself
imports and works. An isolated build brings a setuptools of its own, whatever is installed here.

The fix is ``setuptools<82`` in the environment, and ``--no-build-isolation`` for the build.
Sources: torch/utils/cpp_extension.py of 2.1.2, https://github.com/pytorch/pytorch/pull/174631
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import steps
from torchdoctor.facts import Build, Distribution, Facts, Symptom, Unknown, items_of
from torchdoctor.model import Evidence, Finding
from torchdoctor.tables import neighbours

FAMILY = "versions"
FINDS = ("setuptools-too-new",)
AFTER = ("torch-present",)


def check(
    torch: Build | None,
    distributions: tuple[Distribution, ...],
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare setuptools with what the C++ extensions of this torch import."""
    here = next((d for d in distributions if d.name == "setuptools"), None)
    if torch is None or here is None:
        return
    if not neighbours.setuptools_breaks(here.version, torch.public):
        return
    messages = items_of(symptoms)
    said = next((s for s in messages if s.values.get("module") == "pkg_resources"), None)
    bound = neighbours.setuptools_last_below()
    seen = [
        Evidence("distributions", f"setuptools {here.version}", here.folder),
        Evidence("torch.version", torch.version, "torch/version.py"),
    ]
    if said:
        seen.append(Evidence("symptoms", said.text.strip()[:300], said.source))
    yield Finding(
        "setuptools-too-new",
        "warning" if said else "note",
        f"setuptools {here.version} has no pkg_resources, which torch {torch.public} imports to"
        " build C++ extensions; all the rest of it works.",
        tuple(seen),
        (
            steps.pip_install(
                facts,
                "setuptools",
                f"<{bound}",
                why="It still has pkg_resources; build with --no-build-isolation.",
                cost=steps.SMALL,
            ),
        )
        if said
        else (),
    )
