"""Read what NCCL answered when it was asked for an id."""

from __future__ import annotations

from torchdoctor.child import Run
from torchdoctor.facts import Nccl, Unknown
from torchdoctor.reading import traceback

LONGEST = 300


def read(run: Run) -> dict[str, object]:
    """Return the fact nccl. Raises nothing: what cannot be read is Unknown."""
    data = run.data
    path = data.get("path")
    if not isinstance(path, str):
        return {"nccl": Unknown(run.reason or "the probe of NCCL did not answer")}
    if not path:
        return {"nccl": None}
    version, code = data.get("version"), data.get("code")
    log = data.get("log")
    lines = traceback.symptoms(log, "NCCL") if isinstance(log, str) else ()
    taken = next((s.values for s in lines if s.name == "nccl-interface"), {})
    return {
        "nccl": Nccl(
            path=path,
            version=version if isinstance(version, int) else None,
            code=code if isinstance(code, int) else None,
            said=str(data.get("said", ""))[:LONGEST],
            interface=taken.get("interface", ""),
            address=taken.get("address", ""),
        )
    }
