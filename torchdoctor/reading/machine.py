"""A whole snapshot to facts: each probe's answer by its own reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor.child import Run
from torchdoctor.facts import Expectation, Facts, Interpreter, Platform, Unknown
from torchdoctor.reading import driver, environment, host, import_trial
from torchdoctor.snapshot import Snapshot

TEXT = "text "
"""What was pasted is kept among the probes, by this and the name of its file."""


def read(snapshot: Snapshot, expectation: Expectation) -> Facts:
    """Return the facts that *snapshot* holds, under what the user expects of the machine.

    Never raises: a probe that is missing, failed or answered rubbish leaves unknown facts.
    """
    probes = snapshot.probes
    known: dict[str, object] = {}
    if run := probes.get("environment"):
        known |= environment.read(run)
    if run := probes.get("host"):
        known |= host.read(run)
    if run := probes.get("driver"):
        smi = {name: probes[name] for name in ("nvidia-smi", "nvidia-smi query") if name in probes}
        known |= driver.read(run, smi or None, probes.get("host"))
    if any(name.startswith("import ") for name in probes):
        known |= import_trial.read(probes)
    elif snapshot.options.get("import_torch") is False:
        untried = Unknown("not tried (--no-import)")
        known |= {"trial": untried, "companion_trials": untried, "runtime": untried}
        known["symptoms"] = untried
    known |= _of_one_system(probes)
    known |= _between_gpus(probes)
    if "build tools" in probes:
        from torchdoctor.reading import build_tools  # noqa: PLC0415 - only where they were asked for

        known["build_tools"] = build_tools.read(probes)
    if run := probes.get("all-reduce"):
        from torchdoctor.reading import all_reduce  # noqa: PLC0415 - only where one was tried

        known |= all_reduce.read(run, known.get("symptoms"))
    texts = [(n.removeprefix(TEXT), r.stdout.text) for n, r in probes.items() if n.startswith(TEXT)]
    if texts:
        known = _with_texts(known, texts)
    known = _of_other_systems(known.get("platform")) | known
    facts = Facts(expectation=expectation, **known)  # type: ignore[arg-type]
    if snapshot.redacted and isinstance(facts.interpreter, Interpreter):
        return facts.but(interpreter=replace(facts.interpreter, redacted=True))
    return facts


def _of_one_system(probes: Mapping[str, Run]) -> dict[str, object]:
    """Return what only Windows, or only Linux, has; their readers are for them alone."""
    if "windows" in probes:
        from torchdoctor.reading import windows  # noqa: PLC0415

        return windows.read(probes)
    if "linux" in probes:
        from torchdoctor.reading import linux  # noqa: PLC0415

        return linux.read(probes)
    return {}


def _between_gpus(probes: Mapping[str, Run]) -> dict[str, object]:
    """Return what only a machine with several GPUs, or an environment with NCCL, is asked for."""
    known: dict[str, object] = {}
    if "host" in probes:
        known["peers"] = None
    if run := probes.get("peers"):
        from torchdoctor.reading import peers  # noqa: PLC0415

        known |= peers.read(run)
    if run := probes.get("nccl"):
        from torchdoctor.reading import nccl  # noqa: PLC0415

        known |= nccl.read(run)
    return known


def _of_other_systems(platform: object) -> dict[str, object]:
    """Return None for what a machine of *platform* cannot have."""
    if not isinstance(platform, Platform):
        return {}
    systems = {"windows": "win32", "linux": "linux"}
    return {name: None for name, system in systems.items() if platform.system != system}


def _with_texts(known: dict[str, object], texts: list[tuple[str, str]]) -> dict[str, object]:
    """Return *known* and what *texts* say; a probe's own answer is believed before a text."""
    from torchdoctor.reading import pasted  # noqa: PLC0415 - a live run has no texts

    whole = pasted.read(texts)
    disagreements = [f"{c.fact}: {c.reason}" for c in whole.conflicts]
    more: dict[str, object] = {}
    if runtimes := whole.extra.get("vc_runtime"):
        from torchdoctor.reading import windows  # noqa: PLC0415

        more = windows.of_texts(runtimes)
    remarks = (*whole.unread, *disagreements, *_elsewhere(known, whole.fields))
    said: dict[str, object] = {**whole.fields, **more, "remarks": remarks}
    if not known:
        return said
    merged = {**said, **{n: v for n, v in known.items() if not isinstance(v, Unknown)}}
    unknown = {n: v for n, v in known.items() if isinstance(v, Unknown) and n not in said}
    symptoms = (known.get("symptoms"), said.get("symptoms"))
    both = [s for group in symptoms if isinstance(group, tuple) for s in group]
    return merged | unknown | ({"symptoms": tuple(both)} if both else {})


def _elsewhere(known: Mapping[str, object], said: Mapping[str, object]) -> Iterator[str]:
    """Yield in what a text speaks of another machine, or another day, than what was collected."""
    from torchdoctor.reading.pasted.statements import same_prefix, same_version  # noqa: PLC0415

    for fact, member, alike in (
        ("platform", "system", same_prefix),
        ("interpreter", "version", same_prefix),
        ("torch", "version", same_version),
    ):
        here, there = (getattr(facts.get(fact), member, None) for facts in (known, said))
        if here and there and not alike(here, there):
            yield (
                f"{fact}.{member}: {here} was collected and a text says {there}, so the text is "
                "of another machine, or of another day"
            )
