"""From what was seen to a report, for a program as for the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.facts import Facts
    from torchdoctor.report.document import Report, Target
    from torchdoctor.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Look:
    """The facts that are judged, and where they came from."""

    facts: Facts
    snapshot: Snapshot
    live: bool
    folder: str | None = None
    """The Windows installation that was looked at instead of a snapshot."""


def diagnose(
    given: Snapshot | str | bytes | None = None,
    *,
    expect: Sequence[str] = (),
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
) -> Report:
    """Return what is wrong, and what to run, in which order, as ``torchdoctor check`` says it.

    *given* is a snapshot, or any text: an error, a log, a listing, a snapshot's JSON; None looks
    at the environment that this runs in, with torch tried in a child process. *expect* is what
    the machine is for, as ``--expect`` takes it; *only* and *skip* name checks, findings or
    families. Nothing is printed, and nothing on the machine is changed.

    Raises:
        DoctorError: *given* holds nothing that can be used, or a word is not known.

    """
    return report(seen(given, expect), only=only, skip=skip)


def report(look: Look, *, only: Sequence[str] = (), skip: Sequence[str] = ()) -> Report:
    """Return the report on what was seen; *only* and *skip* as for :func:`diagnose`."""
    from torchdoctor import plan  # noqa: PLC0415 - a program that never asks does not pay
    from torchdoctor.registry import all_checks  # noqa: PLC0415
    from torchdoctor.report import document  # noqa: PLC0415
    from torchdoctor.run import run  # noqa: PLC0415
    from torchdoctor.select import select  # noqa: PLC0415

    checks = select(all_checks(), only=only, skip=skip)
    outcomes = run(checks, look.facts)
    return document.build(
        target=target(look),
        findings=plan.findings_of(outcomes),
        outcomes=outcomes,
        plan=plan.make(checks, look.facts, outcomes),
        essential_unknown=essential_unknown(look),
        facts=look.facts,
    )


def seen(given: Snapshot | str | bytes | None = None, expect: Sequence[str] = ()) -> Look:
    """Return the facts of *given*, as :func:`diagnose` takes it.

    Raises:
        DoctorError: *given* holds nothing that can be used, or a word of *expect* is not known.

    """
    from torchdoctor import inputs  # noqa: PLC0415 - as above

    if given is None:
        return expecting(_here(), expect, live=True)
    if isinstance(given, str | bytes):
        given = inputs.of_bytes(given.encode() if isinstance(given, str) else given)
    look = expecting(given, expect)
    inputs.refuse_what_says_nothing(look.snapshot, look.facts)
    return look


def expecting(snapshot: Snapshot, expect: Sequence[str], *, live: bool = False) -> Look:
    """Return the facts of *snapshot* of a machine of which *expect* is expected.

    Raises:
        DoctorError: a word of *expect* is not known.

    """
    from torchdoctor import expectation  # noqa: PLC0415 - as above
    from torchdoctor.reading import machine  # noqa: PLC0415

    wanted = expectation.read(list(expect)) if expect else expectation.kept(snapshot.options)
    return Look(machine.read(snapshot, wanted), snapshot, live=live)


def _here() -> Snapshot:
    import os  # noqa: PLC0415 - for a look at this machine only
    import sys  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from torchdoctor import collect, interpreters  # noqa: PLC0415

    python = interpreters.given(sys.executable)
    return collect.collect(
        collect.Request(python=python, working_folder=str(Path.cwd())),
        os.environ,
    )


def target(look: Look, inputs: Sequence[str] = ()) -> Target:
    """Return what a report says of the machine that was looked at."""
    from torchdoctor.facts import Interpreter, Platform  # noqa: PLC0415 - it is there by now
    from torchdoctor.reading import machine  # noqa: PLC0415
    from torchdoctor.report.document import Target  # noqa: PLC0415

    platform, interpreter = look.facts.platform, look.facts.interpreter
    looked = any(not name.startswith(machine.TEXT) for name in look.snapshot.probes)
    return Target(
        "folder" if look.folder else "live" if look.live else "snapshot" if looked else "text",
        inputs=(look.folder,) if look.folder else tuple(inputs),
        os=(platform.name or platform.system) if isinstance(platform, Platform) else None,
        python=interpreter.version if isinstance(interpreter, Interpreter) else None,
        collected_at=look.snapshot.collected_at or None,
    )


def essential_unknown(look: Look) -> bool:
    """Tell whether it stayed open if torch imports, though somebody looked."""
    from torchdoctor.facts import Unknown  # noqa: PLC0415 - it is there by now

    options = look.snapshot.options
    asked = bool(options) and options.get("import_torch") is not False
    return isinstance(look.facts.torch, Unknown) or (
        asked and isinstance(look.facts.trial, Unknown)
    )
