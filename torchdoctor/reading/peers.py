"""Read what is between the GPUs of a machine."""

from __future__ import annotations

from collections.abc import Mapping

from torchdoctor.child import Run
from torchdoctor.facts import Peers, Unknown


def read(run: Run) -> dict[str, object]:
    """Return the fact peers. Raises nothing: what cannot be read is Unknown."""
    data = run.data
    gpus, bridges, iommu = (data.get(name) for name in ("gpus", "bridges", "iommu"))
    if data.get("done") is not True or not isinstance(gpus, list) or not isinstance(bridges, list):
        return {"peers": Unknown(run.reason or "the probe of the GPUs' bridges did not answer")}
    known = [one for one in bridges if isinstance(one, Mapping)]
    seen = [one for one in known if isinstance(one.get("redirects"), bool)]
    kinds = iommu.get("kinds") if isinstance(iommu, Mapping) else None
    return {
        "peers": Peers(
            gpus=len(gpus),
            redirecting=tuple(str(one.get("name")) for one in seen if one["redirects"])
            if seen
            else None,
            iommu=_iommu(kinds if isinstance(kinds, list) else []),
            virtual=data.get("virtual") is True,
        )
    }


def _iommu(kinds: list[object]) -> str:
    """Return what the IOMMU does for the GPUs, by the types of their groups."""
    if not kinds:
        return ""
    return "pass-through" if set(kinds) == {"identity"} else "translates"
