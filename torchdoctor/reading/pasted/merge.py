"""From single statements to facts: what agrees is one, what contradicts is kept apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, cast

from torchdoctor.facts import (
    Build,
    Conda,
    CondaPackage,
    Container,
    Cpu,
    Device,
    Distribution,
    Driver,
    Gpu,
    ImportTrial,
    Interpreter,
    Leftover,
    Limits,
    Module,
    Platform,
    Runtime,
    Symptom,
    Toolkit,
    Unknown,
)
from torchdoctor.reading import nvidia_smi
from torchdoctor.reading.environment import tag_of
from torchdoctor.reading.pasted import failure, gpus
from torchdoctor.reading.pasted.collect_env import devices
from torchdoctor.reading.pasted.paths import LAYOUT as LAYOUT_OF_PATHS
from torchdoctor.reading.pasted.paths import kind_of
from torchdoctor.reading.pasted.said import (
    TOLD,
    CondaRow,
    Package,
    Said,
    Value,
    Whole,
)

SAME_MACHINE = ({"x86_64", "AMD64", "amd64"}, {"aarch64", "arm64", "ARM64"})
SHORT_LIST = 12
"""Packages of a fresh environment; such a list needs no name past torch to be whole."""
COMPANIONS = ("torchvision", "torchaudio")


@dataclass(frozen=True, slots=True)
class Source:
    """A statement and the file it was read from."""

    said: Said
    file: str

    @property
    def name(self) -> str:
        """Return the source as a person reads it."""
        return f"{self.file}: {self.said.layout}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two or more sources that contradict each other on one fact."""

    fact: str
    values: tuple[tuple[str, str], ...]
    """Each value as text, and where it was read."""

    @property
    def reason(self) -> str:
        """Return it as the reason of an unknown fact."""
        told = "; ".join(f"{value} ({source})" for value, source in self.values[:4])
        return f"two sources disagree: {told}"


@dataclass
class Merge:
    """The statements of all texts, and what comes of them."""

    sources: Sequence[Source]
    trials: Mapping[str, ImportTrial]
    symptoms: Sequence[Symptom]
    conflicts: list[Conflict] = field(default_factory=list)
    fields: dict[str, object] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _by_fact: dict[str, list[Source]] = field(default_factory=dict)
    _settled: dict[str, Value | Conflict] = field(default_factory=dict)

    def run(self) -> None:
        """Fill ``fields`` and ``conflicts``."""
        for source in self.sources:
            self._by_fact.setdefault(source.said.fact, []).append(source)
        self._put("distributions", self._distributions)
        self._put("conda", self._conda)
        self._put("platform", self._platform)
        self._put("interpreter", self._interpreter)
        self._put("cpu", self._cpu)
        self._put("container", self._container)
        self._put("limits", self._limits)
        self._put("variables", self._variables)
        self._put("leftovers", self._leftovers)
        self._put("gpus", self._gpus)
        self._put("driver", self._driver)
        self._put("toolkits", self._toolkits)
        self._trials()
        self._put("runtime", self._runtime)
        for name in ("torch", *COMPANIONS):
            self._put(name, lambda name=name: self._build(name))  # type: ignore[misc]
        self._put("modules", self._modules)
        if self.symptoms:
            self.fields["symptoms"] = tuple(self.symptoms)
        for fact in ("image", "vc_runtime"):
            values = [str(source.said.value) for source in self._by_fact.get(fact, ())]
            if values:
                self.extra[fact] = tuple(dict.fromkeys(values))

    def _put(self, name: str, make: Callable[[], object]) -> None:
        value = make()
        if value is not _NOTHING:
            self.fields[name] = value

    # ---- one value -----------------------------------------------------------------------------

    def one(
        self, fact: str, *, compatible: Callable[[Value, Value], bool] | None = None
    ) -> Value | Conflict:
        """Return the value of *fact*: _ABSENT, a value, or a conflict.

        The weightiest statements decide. A less weighty one that contradicts is told, unless it is
        a mere hint.
        """
        if fact in self._settled:
            return self._settled[fact]
        stated = self._by_fact.get(fact, [])
        if not stated:
            return _ABSENT
        most = max(source.said.weight for source in stated)
        first = [source for source in stated if source.said.weight == most]
        chosen = self._agreed(first, compatible or _same)
        if isinstance(chosen, Conflict):
            self.conflicts.append(chosen)
        else:
            against = [
                s
                for s in stated
                if TOLD < s.said.weight < most and not (compatible or _same)(s.said.value, chosen)
            ]
            if against:
                told = [s for s in first if s.said.value == chosen][:1] + against[:3]
                self.conflicts.append(_conflict(fact, told))
            chosen = _finest(chosen, [s.said.value for s in stated], compatible or _same)
        self._settled[fact] = chosen
        return chosen

    def _agreed(
        self, sources: Sequence[Source], compatible: Callable[[Value, Value], bool]
    ) -> Value | Conflict:
        chosen = sources[0].said.value
        for source in sources[1:]:
            value = source.said.value
            if not compatible(chosen, value):
                different = [s for s in sources if s.said.value in (chosen, value)]
                return _conflict(source.said.fact, _each_value(different))
            chosen = _finer(chosen, value)
        return chosen

    def text(
        self, fact: str, *, compatible: Callable[[Value, Value], bool] | None = None
    ) -> str | None:
        """Return the text of *fact*, None when it is absent or contradicted."""
        value = self.one(fact, compatible=compatible)
        return value if isinstance(value, str) and value is not _ABSENT else None

    def clash(self, *facts: str) -> Unknown | None:
        """Return why what hangs on *facts* is unknown, None when none is contradicted."""
        for fact in facts:
            value = self.one(fact, compatible=_COMPATIBLE.get(fact))
            if isinstance(value, Conflict):
                return Unknown(value.reason)
        return None

    def layouts(self, fact: str) -> set[str]:
        """Return the layouts that state *fact*."""
        return {source.said.layout for source in self._by_fact.get(fact, ())}

    # ---- the machine ---------------------------------------------------------------------------

    def _platform(self) -> object:
        if unknown := self.clash("platform.system", "platform.machine", "platform.wsl"):
            return unknown
        system = self.text("platform.system")
        machine = self.text("platform.machine", compatible=_same_machine)
        if system is None and machine is None:
            return _NOTHING
        distribution = self.text("platform.distribution")
        like = self.one("platform.like")
        wsl = self.one("platform.wsl")
        if system is None:
            return _NOTHING if machine is None else Platform(system="", machine=machine)
        return Platform(
            system=system,
            machine=machine or "",
            name=self.text("platform.name") or "",
            distribution=distribution,
            like=like if isinstance(like, tuple) and distribution else (),
            version=self.text("platform.version"),
            kernel=self.text("platform.kernel"),
            libc=self.text("platform.libc"),
            libc_version=self._libc_version(),
            wsl=cast("Literal[1, 2]", wsl) if wsl in (1, 2) else None,
            emulated=None,
            jetson=self.one("platform.jetson") is True,
        )

    def _libc_version(self) -> str | None:
        """Return the version of the C library, where the Python that told it tells it rightly."""
        if (said := self.text("platform.libc_version")) is not None:
            return said
        version = _numbers(self.text("interpreter.version", compatible=_prefix) or "")
        if version >= (3, 8) and (said := self.text("platform.libc_of_3_8")):
            return said
        return self.text("platform.libc_of_3_9") if version >= (3, 9) else None

    def _interpreter(self) -> object:
        self._leave_out_other_pythons()
        if unknown := self.clash("interpreter.version", "interpreter.bits"):
            return unknown
        version = self.text("interpreter.version", compatible=_prefix)
        bits = self.one("interpreter.bits")
        executable = self.text("interpreter.executable")
        prefix = self.text("interpreter.prefix", compatible=_same_path)
        kind = self.text("interpreter.kind")
        user_site = self.text("interpreter.user_site", compatible=_same_path)
        if (version, executable, prefix, user_site, kind) == (None,) * 5 and bits is _ABSENT:
            return _NOTHING
        site = self.text("interpreter.site_packages", compatible=_same_path)
        machine = self.text("interpreter.machine") or ""
        installer = self.text("interpreter.installer")
        if installer is None and isinstance(self.fields.get("conda"), Conda) and kind == "conda":
            conda = cast("Conda", self.fields["conda"])
            installer = "conda" if conda.get("pytorch") or conda.get("libtorch") else None
        if installer is None:
            owners = {
                d.installer
                for d in cast("tuple[Distribution, ...]", self.fields.get("distributions", ()))
                if d.name == "torch"
            }
            installer = next(iter(owners & {"uv", "poetry", "pdm"}), None)
        return Interpreter(
            executable=executable or "",
            version=version or "",
            prefix=prefix or "",
            base_prefix=prefix if prefix and kind not in ("venv", "uv", "virtualenv") else "",
            kind=kind or "",
            machine=machine,
            bits=bits if isinstance(bits, int) and bits in (32, 64) else 64,
            implementation=self.text("interpreter.implementation") or "cpython",
            free_threaded=self.one("interpreter.free_threaded") is True,
            user_site=user_site,
            site_packages=(site,) if site else (),
            installer=installer or "pip",
            redacted=not executable,
        )

    def _leave_out_other_pythons(self) -> None:
        """Drop what paths tell of a Python other than the one that named itself."""
        executable = self.text("interpreter.executable")
        own = _prefix_of(executable) if executable else None
        prefixes = [s.said.value for s in self._by_fact.get("interpreter.prefix", ())]
        if own is None or any(_same_path(own, prefix) for prefix in prefixes):
            return
        for fact in ("version", "prefix", "kind", "site_packages", "user_site"):
            stated = self._by_fact.get(f"interpreter.{fact}", [])
            kept = [s for s in stated if s.said.layout != LAYOUT_OF_PATHS]
            if kept:
                self._by_fact[f"interpreter.{fact}"] = kept
            else:
                self._by_fact.pop(f"interpreter.{fact}", None)
        here = Said("interpreter.prefix", own, LAYOUT_OF_PATHS, TOLD)
        self._by_fact.setdefault("interpreter.prefix", []).append(Source(here, ""))
        if kind := kind_of(own):
            said = Said("interpreter.kind", kind, LAYOUT_OF_PATHS, TOLD)
            self._by_fact.setdefault("interpreter.kind", []).append(Source(said, ""))

    def _cpu(self) -> object:
        flags = self.one("cpu.flags")
        if not isinstance(flags, frozenset):
            return _NOTHING
        cores = self.one("cpu.cores")
        return Cpu(self.text("cpu.model"), flags, cores if isinstance(cores, int) else None)

    def _container(self) -> object:
        kind = self.text("container.kind")
        if kind is None:
            return _NOTHING
        hooked = self.one("container.gpu_hook")
        return Container(kind, hooked if isinstance(hooked, bool) else None)

    def _limits(self) -> object:
        size, free = self.one("limits.shm"), self.one("limits.shm_free")
        if not isinstance(size, int):
            return _NOTHING
        return Limits(shm=size, shm_free=free if isinstance(free, int) else None)

    def _variables(self) -> object:
        names = [fact.partition(".")[2] for fact in self._by_fact if fact.startswith("variables.")]
        values = {name: self.text(f"variables.{name}") for name in names}
        known = {name: value for name, value in values.items() if value is not None}
        return MappingProxyType(dict(sorted(known.items()))) if known else _NOTHING

    def _leftovers(self) -> object:
        found = [s.said.value for s in self._by_fact.get("leftover", ())]
        kept = [one for one in found if isinstance(one, Leftover)]
        return tuple(dict.fromkeys(kept)) if kept else _NOTHING

    # ---- packages ------------------------------------------------------------------------------

    def _distributions(self) -> object:
        stated = self._by_fact.get("package", [])
        gone = {s.said.value: s for s in self._by_fact.get("gone", ())}
        by_name: dict[str, list[Source]] = {}
        for source in stated:
            if isinstance(source.said.value, Package):
                by_name.setdefault(source.said.value.name, []).append(source)
        found: list[Distribution] = []
        for name in sorted(by_name):
            found += self._copies(name, by_name[name], gone.get(name))
        whole = self._whole("distributions")
        if whole is not None:
            self.complete.add("distributions")
            self._listed = whole
        return tuple(found) if found or whole is not None else _NOTHING

    _listed: frozenset[str] = frozenset()

    def _copies(
        self, name: str, sources: Sequence[Source], gone: Source | None
    ) -> list[Distribution]:
        """Return the copies of one package; none when sources disagree on the only one."""
        most = max(source.said.weight for source in sources)
        first = [source for source in sources if source.said.weight == most]
        folders = {_package(s).folder for s in first if _package(s).folder}
        if len(folders) > 1:
            return [
                self._copy([s for s in first if _package(s).folder == folder])
                for folder in sorted(folders)
                if self._agree(name, [s for s in first if _package(s).folder == folder])
            ]
        if most <= TOLD:
            # What an installer said later holds; what it took away is gone.
            first = [s for s in first if s.said.line == max(x.said.line for x in first)]
            if gone is not None and gone.said.line > first[0].said.line:
                return []
        if not self._agree(name, first):
            return []
        return [self._copy(first)]

    def _agree(self, name: str, sources: Sequence[Source]) -> bool:
        versions = [(_package(s).version, s) for s in sources]
        chosen = versions[0][0]
        for version, source in versions[1:]:
            if not _same_version(chosen, version):
                told = (versions[0][1], source)
                values = tuple((_package(s).version, s.name) for s in told)
                self.conflicts.append(Conflict(f"distributions.{name}", values))
                return False
            chosen = cast("str", _finer(chosen, version))
        return True

    def _copy(self, sources: Sequence[Source]) -> Distribution:
        packages = [_package(source) for source in sources]
        version = packages[0].version
        for one in packages[1:]:
            version = cast("str", _finer(version, one.version))
        folder = next((p.folder for p in packages if p.folder), "")
        return Distribution(
            name=packages[0].name,
            version=version,
            folder=folder,
            installer=next((p.installer for p in packages if p.installer), ""),
            editable=any(p.editable for p in packages),
            user_site=bool(_USER_SITE.search(folder)),
        )

    def _whole(self, what: str) -> frozenset[str] | None:
        found = [s.said.value for s in self._by_fact.get("whole", ())]
        lists = [one.names for one in found if isinstance(one, Whole) and one.what == what]
        return lists[0] if len(lists) == 1 else None

    def _conda(self) -> object:
        rows: dict[str, CondaRow] = {}
        bad: set[str] = set()
        for source in self._by_fact.get("conda", ()):
            row = source.said.value
            if not isinstance(row, CondaRow):
                continue
            if not row.channel and row.build and source.said.layout in _NAMELESS_DEFAULTS:
                row = replace(row, channel="defaults")
            known = rows.get(row.name)
            if known is None:
                rows[row.name] = row
            elif known.version and row.version and known.version != row.version:
                if row.name not in bad:
                    values = ((known.version, source.name), (row.version, source.name))
                    self.conflicts.append(Conflict(f"conda.{row.name}", values))
                bad.add(row.name)
            else:
                rows[row.name] = CondaRow(
                    row.name,
                    known.version or row.version,
                    known.build or row.build,
                    known.channel or row.channel,
                )
        kept = tuple(
            CondaPackage(r.name, r.version, r.build, _channel(r))
            for n, r in sorted(rows.items())
            if n not in bad
        )
        if self._whole("conda") is not None:
            self.complete.add("conda")
        if not kept and "conda.here" not in self._by_fact:
            return _NOTHING
        return Conda(kept, prefix=self.text("conda.prefix", compatible=_same_path) or "")

    # ---- torch ---------------------------------------------------------------------------------

    def _build(self, name: str) -> object:  # noqa: PLR0911 - one answer for each state
        printed = self.one(f"{name}.version", compatible=_same_version)
        if isinstance(printed, Conflict):
            return Unknown(printed.reason)
        copies = [
            d
            for d in cast("tuple[Distribution, ...]", self.fields.get("distributions", ()))
            if d.name == name
        ]
        trial = self.trials.get(name)
        if printed is _ABSENT and trial is not None and failure.missing(trial):
            return None
        contested = next((c for c in self.conflicts if c.fact == f"distributions.{name}"), None)
        conda = self._conda_build(name)
        if printed is not _ABSENT:
            version = str(printed)
        elif contested:
            return Unknown(contested.reason)
        elif copies:
            if len({c.version for c in copies}) > 1:
                return Unknown(
                    f"two copies of {name} are listed, and nothing tells which is imported"
                )
            version = copies[0].version
        elif conda is not None and conda.version:
            version = conda.version
        elif "distributions" in self.complete and conda is None and name not in self._listed:
            return None if self._cut_after(name) else _NOTHING
        else:
            return _NOTHING
        return self._assembled(name, version, copies, conda)

    def _has_no_accelerator(self) -> bool:
        """Tell whether torch says that it was built for none.

        ``torch.version.cuda`` alone is also None for AMD's and Intel's builds, which have a label.
        """
        if self.one("torch.no_accelerator") is True:
            return True
        listed = self.fields.get("gpus")
        others = isinstance(listed, tuple) and any(g.vendor in ("amd", "intel") for g in listed)
        return "torch.cuda" in self._by_fact and self.one("torch.cuda") is None and not others

    def _cut_after(self, name: str) -> bool:
        """Tell whether the list goes on past *name*, so that it was not cut before it."""
        return max(self._listed, default="") > name or len(self._listed) < SHORT_LIST

    def _assembled(
        self, name: str, version: str, copies: Sequence[Distribution], conda: CondaPackage | None
    ) -> Build:
        owner = next((c for c in copies if _same_version(c.version, version)), None)
        if owner is not None:
            version = cast("str", _finer(version, owner.version))
        said: dict[str, str | None] = {}
        cuda, hip, xpu, rocm = (
            (self.text(f"torch.{key}") for key in ("cuda", "hip", "xpu", "rocm"))
            if name == "torch"
            else (None, None, None, None)
        )
        if name == "torch":
            if cuda:
                said["cuda"] = cuda
            if rocm or hip:
                said["rocm"] = rocm or hip
            if xpu:
                said["xpu"] = xpu
            if self._has_no_accelerator() and not (cuda or hip or xpu or rocm):
                said["cuda"] = None
        own_conda = (
            conda is not None and conda.version == version.partition("+")[0] and owner is None
        )
        file = self.text("torch.file") if name == "torch" else None
        trial = self.trials.get(name)
        place = file or (trial.file if trial else None)
        if owner is not None and not owner.folder and place and (site := _SITE_OF.match(place)):
            owner = None if self._other_copy(site[1], copies) else owner
        return Build(
            version=version,
            cuda=cuda,
            hip=hip,
            xpu=xpu,
            origin=re.sub(r"[\\/]__init__\.py$", "", place)
            if place and "__init__" in place
            else "",
            tag=tag_of(version, said, conda.build if own_conda and conda else None),
            distribution=owner,
        )

    @staticmethod
    def _other_copy(site: str, copies: Sequence[Distribution]) -> bool:
        return any(c.folder and not _same_path(c.folder, site) for c in copies)

    def _conda_build(self, name: str) -> CondaPackage | None:
        conda = self.fields.get("conda")
        if not isinstance(conda, Conda):
            return None
        names = ("pytorch", "pytorch-gpu", "pytorch-cpu") if name == "torch" else (name,)
        return next((found for n in names if (found := conda.get(n)) is not None), None)

    def _modules(self) -> object:
        found: dict[str, Module | None] = {}
        file = self.text("torch.file")
        trial = self.trials.get("torch")
        place = file or (trial.file if trial else None)
        if place and re.search(r"[\\/]torch[\\/]__init__\.py$", place):
            found["torch"] = Module(
                "torch", place, re.split(r"[\\/]torch[\\/]__init__\.py$", place)[0]
            )
        elif place and re.search(r"[\\/]torch\.py$", place):
            found["torch"] = Module("torch", place, re.split(r"[\\/]torch\.py$", place)[0])
        for name, one in self.trials.items():
            if failure.missing(one) and f"{name}.version" not in self._by_fact:
                found[name] = None
        return MappingProxyType(found) if found else _NOTHING

    def _trials(self) -> None:
        torch = self.trials.get("torch")
        imported = self.one("trial.imported", compatible=_same_version)
        asked = [
            s.said.value
            for s in self._by_fact.get("torch.version", ())
            if s.said.layout == "what Python printed"
        ]
        shown = isinstance(imported, str) and imported is not _ABSENT
        if torch is not None and shown:
            values = (
                (f"{torch.error.type if torch.error else 'an error'}", "a traceback"),
                (f"torch {imported} was imported", "collect_env"),
            )
            conflict = Conflict("trial", values)
            self.conflicts.append(conflict)
            self.fields["trial"] = Unknown(conflict.reason)
        elif torch is not None:
            self.fields["trial"] = torch
        elif shown:
            self.fields["trial"] = ImportTrial("torch", "imported", 0.0, version=str(imported))
        elif asked:
            one = str(asked[-1]) if len(set(asked)) == 1 else None
            self.fields["trial"] = ImportTrial("torch", "imported", 0.0, version=one)
        companions = {n: t for n, t in self.trials.items() if n != "torch"}
        if companions:
            self.fields["companion_trials"] = MappingProxyType(companions)

    def _runtime(self) -> object:
        if unknown := self.clash("runtime.available"):
            return unknown
        available = self.one("runtime.available")
        if not isinstance(available, bool):
            return _NOTHING
        seen = devices([s.said for s in self.sources if s.said.fact == "runtime.device"])
        version = self.one("torch.version", compatible=_same_version)
        archs = self.one("runtime.arch_list")
        mps, xpu, cudnn = (self.one(f"runtime.{key}") for key in ("mps", "xpu", "cudnn"))
        reasons = [
            s.text
            for s in self.symptoms
            if s.name.startswith(("cuda-", "no-nvidia", "not-compiled"))
        ]
        return Runtime(
            version=version if isinstance(version, str) and version is not _ABSENT else "",
            cuda=self.text("torch.cuda"),
            hip=self.text("torch.hip"),
            available=available,
            reason=None if available or not reasons else reasons[0],
            devices=tuple(self._named(d) for d in seen),
            arch_list=archs if isinstance(archs, tuple) else (),
            cudnn=_cudnn(cudnn) if isinstance(cudnn, int) else None,
            mps=mps if isinstance(mps, bool) else None,
            xpu=xpu if isinstance(xpu, bool) else None,
            numpy=Unknown("not tried by what printed the listing"),
        )

    def _named(self, device: Device) -> Device:
        listed = self.fields.get("gpus")
        if device.name or not isinstance(listed, tuple) or len(listed) != 1:
            return device
        return replace(device, name=cast("Gpu", listed[0]).name)

    # ---- the driver ----------------------------------------------------------------------------

    def _stated_gpus(self) -> dict[str, list[tuple[Source, Gpu]]]:
        stated: dict[str, list[tuple[Source, Gpu]]] = {}
        for source in self._by_fact.get("gpu", ()):
            if isinstance(source.said.value, Gpu):
                key = source.said.layout
                stated.setdefault(key, []).append((source, source.said.value))
        for source in self._by_fact.get("runtime.device", ()):
            if isinstance(source.said.value, Device) and source.said.value.name:
                device = source.said.value
                vendor = gpus.vendor_of(device.name) or "nvidia"
                listed = Gpu(device.name, vendor, device.index, device.capability)
                stated.setdefault("what Python printed", []).append((source, listed))
        return stated

    def _gpus(self) -> object:
        stated = self._stated_gpus()
        named = {layout: self._listed_gpus(layout, rows) for layout, rows in stated.items()}
        order = [layout for layout in gpus.ORDER if layout in named] or list(named)
        if not order:
            return _NOTHING
        best = named[order[0]]
        if isinstance(best, Unknown):
            return best
        for layout in order[1:]:
            other = named[layout]
            if isinstance(other, Unknown):
                continue
            if (conflict := _contradiction(best, order[0], other, layout)) is not None:
                self.conflicts.append(conflict)
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
                self.conflicts.append(conflict)
                return Unknown(conflict.reason)
            by_index[gpu.index] = _both(known, gpu) if known else gpu
        if by_index:
            return tuple(by_index[index] for index in sorted(by_index))
        return max(plain.values(), key=len, default=())

    def _with_capabilities(self, found: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
        told = [s.said.value for s in self._by_fact.get("capability", ())]
        pairs = {d.index: d.capability for d in told if isinstance(d, Device)}
        seen = devices([s.said for s in self._by_fact.get("runtime.device", ())])
        pairs.update(
            {d.index: d.capability for d in seen if d.capability and (len(found) == 1 or d.name)}
        )
        return tuple(
            replace(gpu, capability=gpu.capability or pairs.get(gpu.index or 0))
            if len(found) == 1 or gpu.index is not None
            else gpu
            for gpu in found
        )

    def _driver(self) -> object:
        if unknown := self.clash("driver.release"):
            return unknown
        release = self.text("driver.release")
        cuda = self.text("driver.cuda")
        told = {
            key: self.text(f"driver.{key}")
            for key in ("kernel_module", "library", "error", "fabric")
        }
        code = self.one("driver.code")
        for symptom in self.symptoms:
            if symptom.name == "cuda-driver-too-old" and "cuda" in symptom.values:
                cuda = cuda or symptom.values["cuda"]
        if not (release or cuda or any(told.values())):
            return _NOTHING
        stated = [s for s in self.sources if s.said.fact.startswith("driver.")]
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

    def _toolkits(self) -> object:
        found = [s.said.value for s in self._by_fact.get("toolkit", ())]
        kept = [one for one in found if isinstance(one, Toolkit)]
        return tuple(dict.fromkeys(kept)) if kept else _NOTHING


class _Absent(str):
    """Marks a fact that nothing states."""

    __slots__ = ()


_ABSENT = _Absent("absent")
_NOTHING = object()
_USER_SITE = re.compile(
    r"(?i)AppData[\\/]Roaming[\\/]Python|[\\/]\.local[\\/]lib[\\/]python|"
    r"LocalCache[\\/]local-packages"
)
_SITE_OF = re.compile(r"(?i)(.{1,400}[\\/](?:site|dist)-packages)[\\/]")
_NAMELESS_DEFAULTS = ("conda list", "collect_env")
"""Where a row without a channel is of Anaconda's own."""
_DRIVER_LISTS = {"nvidia-smi", "collect_env", "rocminfo", "rocm-smi", "amd-smi"}


def _package(source: Source) -> Package:
    return cast("Package", source.said.value)


def _channel(row: CondaRow) -> str:
    return (
        "defaults"
        if re.match(r"pkgs/", row.channel)
        else row.channel.rpartition("conda.anaconda.org/")[2]
    )


def _each_value(sources: Sequence[Source]) -> list[Source]:
    seen: dict[Value, Source] = {}
    for source in sources:
        seen.setdefault(source.said.value, source)
    return list(seen.values())


def _conflict(fact: str, sources: Iterable[Source]) -> Conflict:
    return Conflict(fact, tuple((str(s.said.value), s.name) for s in sources))


def _same(one: Value, other: Value) -> bool:
    return one == other


def _prefix(one: Value, other: Value) -> bool:
    """Tell whether one version is the other, said more exactly: 3.10 and 3.10.12."""
    if not isinstance(one, str) or not isinstance(other, str):
        return one == other
    short, long = sorted((one, other), key=len)
    return long == short or long.startswith(f"{short}.")


def _same_version(one: Value, other: Value) -> bool:
    """Tell whether two versions may be one: 2.4.0 and 2.4.0+cu121."""
    if not isinstance(one, str) or not isinstance(other, str):
        return one == other
    if "+" in one and "+" in other:
        return one == other
    return one.partition("+")[0] == other.partition("+")[0]


def _same_machine(one: Value, other: Value) -> bool:
    return one == other or any(one in same and other in same for same in SAME_MACHINE)


def _same_path(one: Value, other: Value) -> bool:
    return _path(one) == _path(other)


def _path(value: Value) -> str:
    return re.sub(r"[\\/]+", "/", str(value)).rstrip("/").lower()


def _finer(one: Value, other: Value) -> Value:
    if (
        isinstance(one, str)
        and isinstance(other, str)
        and len(other) > len(one)
        and other.startswith(one)
    ):
        return other
    return one


def _finest(
    chosen: Value, others: Iterable[Value], compatible: Callable[[Value, Value], bool]
) -> Value:
    """Return *chosen* said as exactly as any statement that agrees with it."""
    if compatible in (_prefix, _same_version):
        for other in others:
            if compatible(chosen, other):
                chosen = _finer(chosen, other)
    elif compatible is _same_path:
        # pip prints paths in lower case on Windows.
        return min((str(o) for o in others if compatible(chosen, o)), default=chosen)
    return chosen


_COMPATIBLE: Mapping[str, Callable[[Value, Value], bool]] = {
    "platform.machine": _same_machine,
    "interpreter.version": _prefix,
    "torch.version": _same_version,
}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _prefix_of(executable: str) -> str | None:
    found = re.match(
        r"(.{1,300}?)(?:[\\/](?:bin|Scripts))?[\\/]python[\w.]*$", executable, re.IGNORECASE
    )
    return found[1] if found else None


def _cudnn(number: int) -> str:
    unit = 10_000 if number >= 10_000 else 1_000  # noqa: PLR2004 - 9.0.0 is 90000
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


# ---- GPUs ---------------------------------------------------------------------------------------


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
