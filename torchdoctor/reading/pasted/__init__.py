"""What people paste, read into the same facts as a live run.

A text may be anything: the listing of collect_env, of pip, conda, uv, pixi, poetry, nvidia-smi,
a traceback, a session at a prompt, all of them mixed with prose. Only what it says becomes a
fact; what it does not say is left out, and where two places contradict each other, that is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from torchdoctor.facts import Device, Gpu, Symptom
from torchdoctor.reading.pasted import (
    collect_env,
    collectors,
    conda,
    embedded,
    failure,
    gpus,
    installer_log,
    lines,
    machine,
    normalise,
    packages,
    paths,
    python,
    report,
    topology,
    undecided,
    unread,
    windows_programs,
)
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.merge import Merge
from torchdoctor.reading.pasted.normalise import decode, load
from torchdoctor.reading.pasted.said import PRINTED, TOLD, Package, Said
from torchdoctor.reading.pasted.statements import Conflict, Source, Statements
from torchdoctor.reading.traceback import told
from torchdoctor.values import dataclass

READERS: Mapping[str, Callable[[Sequence[Line]], Iterator[Said]]] = MappingProxyType(
    {
        "collect_env": collect_env.read,
        "packages": packages.read,
        "conda": conda.read,
        "installer log": installer_log.read,
        "GPUs": gpus.read,
        "links": topology.read,
        "Python": python.read,
        "machine": machine.read,
        "Windows programs": windows_programs.read,
        "paths": paths.read,
        "collectors": collectors.read,
    }
)
"""Every reader of lines, by what it reads."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """What texts say of one machine.

    ``fields`` are names of :class:`~torchdoctor.facts.Facts` with their values. What the texts do
    not say is not in it.
    """

    fields: Mapping[str, object]
    conflicts: tuple[Conflict, ...] = ()
    understood: tuple[str, ...] = ()
    """Which forms of text were found: "collect_env", "pip list", "a traceback"."""
    unread: tuple[str, ...] = ()
    """What looks like a known form and could not be read, one sentence each."""
    complete: frozenset[str] = frozenset()
    """Which of "distributions" and "conda" show everything: only there is absence a fact."""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What no fact has a place for: images of Dockerfiles, Visual C++ runtimes, links of GPUs."""


def read(texts: Sequence[tuple[str, str]]) -> Pasted:
    """Return what *texts*, pairs of a name and a text, say of one machine. Never raises."""
    sources: list[Source] = []
    found: list[Symptom] = []
    trials = {}
    torn: list[str] = []
    looked_at: list[tuple[str, Sequence[Line]]] = []
    for name, whole in texts:
        torn += [f"{name}: {what}" for what in embedded.damage(whole)]
        rest, reported, reported_facts = report.take(normalise.shorten(whole), name)
        found += reported
        sources += [Source(said, name) for said in reported_facts]
        parts = lines.read(rest)
        looked_at.append((name, parts))
        text = "\n".join(_MARKS[line.kind] + line.text for line in parts)
        stated = [said for reader in READERS.values() for said in reader(parts)]
        known = told(text, name, _versions(stated))
        found += known
        stated += _of_symptoms(known)
        sources += [Source(said, name) for said in stated]
        failed = failure.read(text, parts)
        trials.update(failed)
        torn += [f"{name}: {what}" for what in unread.read(parts)]
    merge = Merge(Statements.of(sources), trials, found)
    merge.run()
    torn += undecided.read(looked_at, sources, merge.fields, torn=bool(torn))
    layouts = [s.said.layout for s in sources if s.said.layout not in _NO_LAYOUT]
    if trials:
        layouts.append("a traceback")
    if any(symptom.name == report.NAME for symptom in found):
        layouts.append(report.LAYOUT)
    if any(symptom.name != report.NAME for symptom in found):
        layouts.append("known messages")
    return Pasted(
        fields=MappingProxyType(merge.fields),
        conflicts=tuple(dict.fromkeys(merge.said.conflicts)),
        understood=tuple(dict.fromkeys(layouts)),
        unread=tuple(torn),
        complete=frozenset(merge.complete),
        extra=MappingProxyType(merge.extra),
    )


def _versions(stated: Sequence[Said]) -> dict[str, set[str]]:
    """Return the versions of torch that a text names."""
    printed = {str(s.value) for s in stated if s.fact == "torch.version" and s.value}
    listed = {
        s.value.version
        for s in stated
        if s.fact == "package" and isinstance(s.value, Package) and s.value.name == "torch"
    }
    return {"torch": printed | listed} if printed | listed else {}


def _of_symptoms(found: Sequence[Symptom]) -> Iterator[Said]:
    """Yield what torch's warnings tell of the GPUs."""
    seen = set()
    for symptom in found:
        name, capability = symptom.values.get("gpu", ""), symptom.values.get("capability", "")
        pair = re.fullmatch(r"(\d{1,2})\.(\d)", capability)
        if symptom.name != "gpu-not-in-build" or pair is None:
            continue
        name = name.strip()
        if (name, capability) in seen or not gpus.vendor_of(name):
            continue
        seen.add((name, capability))
        numbers = int(pair[1]), int(pair[2])
        index = symptom.values.get("index", "")
        where = int(index) if index.isdigit() else None
        yield Said("gpu", Gpu(name, "nvidia", where, numbers), "a warning of torch", TOLD)
        if where is not None:
            yield Said(
                "runtime.device", Device(where, name, numbers), "a warning of torch", PRINTED
            )


_MARKS = {"output": "", "command": "$ ", "python": ">>> "}
_NO_LAYOUT = (
    paths.LAYOUT,
    report.LAYOUT,
    "a prompt",
    "what was written",
    "mentioned",
    "before a command",
)


__all__ = ["READERS", "Conflict", "Pasted", "decode", "load", "read"]
