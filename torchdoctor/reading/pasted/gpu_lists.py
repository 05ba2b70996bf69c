"""GPUs, driver and toolkits, out of what several tools list of one machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from torchdoctor.facts import Device, Driver, Gpu, Symptom, Toolkit, Unknown
from torchdoctor.reading import nvidia_smi
from torchdoctor.reading.pasted.collect_env import devices
from torchdoctor.reading.pasted.gpus import ORDER, vendor_of
from torchdoctor.reading.pasted.statements import NOTHING, Conflict, Source, Statements
from torchdoctor.values import dataclass

_DRIVER_LISTS = {"nvidia-smi", "collect_env", "rocminfo", "rocm-smi", "amd-smi"}


@dataclass(frozen=True, slots=True)
class GpuLists:
    """What the texts list of GPUs and their driver; *symptoms* are torch's messages."""

    said: Statements
    symptoms: Sequence[Symptom]

    def _stated_gpus(self) -> dict[str, list[tuple[Source, Gpu]]]:
        stated: dict[str, list[tuple[Source, Gpu]]] = {}
        for source in self.said.by_fact.get("gpu", ()):
            if isinstance(source.said.value, Gpu):
                key = source.said.layout
                stated.setdefault(key, []).append((source, source.said.value))
        for source in self.said.by_fact.get("runtime.device", ()):
            if isinstance(source.said.value, Device) and source.said.value.name:
                device = source.said.value
                vendor = vendor_of(device.name) or "nvidia"
                listed = Gpu(device.name, vendor, device.index, device.capability)
                stated.setdefault("what Python printed", []).append((source, listed))
        return stated

    def gpus(self) -> object:
        """Return the GPUs, in the order of the fullest list; unknown where lists disagree."""
        stated = self._stated_gpus()
        named = {layout: self._listed_gpus(layout, rows) for layout, rows in stated.items()}
        order = [layout for layout in ORDER if layout in named] or list(named)
        if not order:
            return NOTHING
        best = named[order[0]]
        if isinstance(best, Unknown):
            return best
        for layout in order[1:]:
            other = named[layout]
            if isinstance(other, Unknown):
                continue
            if (conflict := _contradiction(best, order[0], other, layout)) is not None:
                self.said.conflicts.append(conflict)
                if layout in _DRIVER_LISTS and order[0] in _DRIVER_LISTS:
                    return Unknown(conflict.reason)
                continue
            best = _completed(best, other)
        return self._with_capabilities(best)

    def _listed_gpus(
        self, layout: str, rows: Sequence[tuple[Source, Gpu]]
    ) -> tuple[Gpu, ...] | Unknown:
        by_index: dict[int, Gpu] = {}
        plain: dict[str, tuple[Gpu, ...]] = {}
        for source, gpu in rows:
            if gpu.index is None:
                plain[source.file] = (*plain.get(source.file, ()), gpu)[: nvidia_smi.MOST_GPUS]
                continue
            known = by_index.get(gpu.index)
            if known is not None and not _same_gpu(known, gpu):
                conflict = Conflict(
                    "gpus",
                    (
                        (f"GPU {gpu.index}: {known.name}", layout),
                        (f"GPU {gpu.index}: {gpu.name}", layout),
                    ),
                )
                self.said.conflicts.append(conflict)
                return Unknown(conflict.reason)
            by_index[gpu.index] = _both(known, gpu) if known else gpu
        if by_index:
            return tuple(by_index[index] for index in sorted(by_index))
        return max(plain.values(), key=len, default=())

    def _with_capabilities(self, found: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
        told = [s.said.value for s in self.said.by_fact.get("capability", ())]
        pairs = {d.index: d.capability for d in told if isinstance(d, Device)}
        seen = devices([s.said for s in self.said.by_fact.get("runtime.device", ())])
        pairs.update(
            {d.index: d.capability for d in seen if d.capability and (len(found) == 1 or d.name)}
        )
        return tuple(
            replace(gpu, capability=gpu.capability or pairs.get(gpu.index or 0))
            if len(found) == 1 or gpu.index is not None
            else gpu
            for gpu in found
        )

    def driver(self) -> object:
        """Return the driver, as far as anything tells of it."""
        if unknown := self.said.clash("driver.release"):
            return unknown
        release = self.said.text("driver.release")
        cuda = self.said.text("driver.cuda")
        told = {
            key: self.said.text(f"driver.{key}")
            for key in ("kernel_module", "library", "error", "fabric")
        }
        code = self.said.one("driver.code")
        for symptom in self.symptoms:
            if symptom.name == "cuda-driver-too-old" and "cuda" in symptom.values:
                cuda = cuda or symptom.values["cuda"]
        if not (release or cuda or any(told.values())):
            return NOTHING
        stated = [s for s in self.said.sources if s.said.fact.startswith("driver.")]
        layout = next((s.said.layout for s in stated if s.said.fact == "driver.release"), None)
        return Driver(
            release=release,
            cuda=cuda,
            source=layout or (stated[0].said.layout if stated else "a message of torch"),
            kernel_module=told["kernel_module"],
            library=told["library"],
            error=told["error"],
            code=code if isinstance(code, int) else None,
            fabric=told["fabric"],
        )

    def toolkits(self) -> object:
        """Return the CUDA toolkits that were named, each once."""
        found = [s.said.value for s in self.said.by_fact.get("toolkit", ())]
        kept = [one for one in found if isinstance(one, Toolkit)]
        return tuple(dict.fromkeys(kept)) if kept else NOTHING


# ---- one GPU in two lists -----------------------------------------------------------------------


def _bare(name: str) -> str:
    return (
        re.sub(r"(?i)^(?:nvidia|amd|intel(?:\(r\))?|geforce)\s+", "", name)
        .lower()
        .rstrip(".")
        .strip()
    )


def _same_name(one: str, other: str) -> bool:
    """Tell whether two names may be of one GPU; a table cuts long names with dots."""
    if one.endswith("..") or other.endswith(".."):
        shown = [re.sub(r"^nvidia\s+", "", n.lower()).rstrip(". ") for n in (one, other)]
        return shown[0].startswith(shown[1]) or shown[1].startswith(shown[0])
    first, second = (re.sub(r"^(?:nvidia|geforce)\s+", "", _bare(n)) for n in (one, other))
    return first == second or not first or not second


def _same_gpu(one: Gpu, other: Gpu) -> bool:
    return one.vendor == other.vendor and _same_name(one.name, other.name)


def _both(one: Gpu, other: Gpu) -> Gpu:
    longer = max((one.name, other.name), key=lambda n: (not n.endswith(".."), len(n)))
    return replace(
        one,
        name=longer,
        index=one.index if one.index is not None else other.index,
        capability=one.capability or other.capability,
        memory=one.memory or other.memory,
        uuid=one.uuid or other.uuid,
        bus=one.bus or other.bus,
        mig=other.mig if one.mig is None else one.mig,
        compute_mode=one.compute_mode or other.compute_mode,
        gfx=one.gfx or other.gfx,
    )


def _contradiction(
    best: tuple[Gpu, ...], layout: str, other: tuple[Gpu, ...], other_layout: str
) -> Conflict | None:
    by_index = {gpu.index: gpu for gpu in best if gpu.index is not None}
    for gpu in other:
        known = by_index.get(gpu.index) if gpu.index is not None else None
        if known is not None and not _same_gpu(known, gpu):
            values = (
                (f"GPU {gpu.index}: {known.name}", layout),
                (f"GPU {gpu.index}: {gpu.name}", other_layout),
            )
            return Conflict("gpus", values)
    return None


def _completed(best: tuple[Gpu, ...], other: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return *best* with what the other listing knows more, and the GPUs of other makers."""
    found = list(best)
    used: set[int] = set()
    for gpu in other:
        place = next(
            (
                i
                for i, known in enumerate(found)
                if i not in used
                and _same_gpu(known, gpu)
                and (gpu.index is None or known.index is None or gpu.index == known.index)
            ),
            None,
        )
        if place is not None:
            used.add(place)
            found[place] = _both(found[place], gpu)
        elif all(known.vendor != gpu.vendor for known in best):
            found.append(gpu)
    return tuple(found)
