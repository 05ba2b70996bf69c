"""A whole snapshot to facts: each probe's answer by its own reader."""

from __future__ import annotations

from dataclasses import replace

from torchdoctor.facts import Expectation, Facts, Interpreter, Unknown
from torchdoctor.reading import driver, environment, host, import_trial
from torchdoctor.snapshot import Snapshot


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
    facts = Facts(expectation=expectation, **known)  # type: ignore[arg-type]
    if snapshot.redacted and isinstance(facts.interpreter, Interpreter):
        return replace(facts, interpreter=replace(facts.interpreter, redacted=True))
    return facts
