"""What the record of the shared objects says, as facts.

Source: ld.so(8); how torch starts is in tables/torch_start.toml.
"""

from __future__ import annotations

from collections.abc import Mapping

from torchdoctor.child import Run
from torchdoctor.facts import Linux, Unknown


def read(runs: Mapping[str, Run]) -> dict[str, object]:
    """Return the fact ``linux`` of the probes *runs*; nothing where none looked.

    Raises nothing: what cannot be read is Unknown.
    """
    run = runs.get("linux files") or runs.get("linux")
    if run is None:
        return {}
    record = run.data.get("record")
    if not isinstance(record, Mapping):
        errors = run.data.get("errors")
        told = errors.get("record") if isinstance(errors, Mapping) else None
        return {"linux": Unknown(_reason(told or run.reason or run.outcome))}
    from torchdoctor.linux import answers  # noqa: PLC0415 - only where there is a record

    try:
        said = answers.of(record)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return {"linux": Unknown(_reason(error))}
    return {"linux": Linux(**said)}  # type: ignore[arg-type]


def _reason(why: object) -> str:
    return f"the shared objects were not read: {why}"[:300]
