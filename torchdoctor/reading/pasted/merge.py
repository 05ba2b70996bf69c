"""From single statements to facts: the machine, its Python, and what torch said there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, cast

from torchdoctor.facts import (
    BuildTools,
    Compiler,
    Conda,
    Container,
    Cpu,
    Device,
    Distribution,
    ErrorText,
    Gpu,
    ImportTrial,
    Interpreter,
    Leftover,
    Limits,
    Platform,
    Runtime,
    Symptom,
    Unknown,
)
from torchdoctor.reading.pasted.collect_env import devices
from torchdoctor.reading.pasted.gpu_lists import GpuLists
from torchdoctor.reading.pasted.installed import Installed
from torchdoctor.reading.pasted.paths import LAYOUT as LAYOUT_OF_PATHS
from torchdoctor.reading.pasted.paths import kind_of
from torchdoctor.reading.pasted.said import TOLD, Said
from torchdoctor.reading.pasted.statements import (
    ABSENT,
    NOTHING,
    Conflict,
    Source,
    Statements,
    same_machine,
    same_path,
    same_prefix,
    same_version,
)

COMPANIONS = ("torchvision", "torchaudio")


@dataclass
class Merge:
    """The statements of all texts, and what comes of them."""

    said: Statements
    trials: Mapping[str, ImportTrial]
    symptoms: Sequence[Symptom]
    fields: dict[str, object] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def run(self) -> None:
        """Fill ``fields``, ``complete`` and ``extra``."""
        installed = Installed(self.said, self.trials, self.fields)
        lists = GpuLists(self.said, self.symptoms)
        self._put("distributions", installed.distributions)
        self._put("conda", installed.conda)
        self._put("platform", self._platform)
        self._put("interpreter", self._interpreter)
        self._put("cpu", self._cpu)
        self._put("container", self._container)
        self._put("limits", self._limits)
        self._put("variables", self._variables)
        self._put("leftovers", self._leftovers)
        self._put("gpus", lists.gpus)
        self._put("driver", lists.driver)
        self._put("toolkits", lists.toolkits)
        self._put("build_tools", self._build_tools)
        self._trials()
        self._put("runtime", self._runtime)
        for name in ("torch", *COMPANIONS):
            self._put(name, lambda name=name: installed.build(name))  # type: ignore[misc]
        self._put("modules", installed.modules)
        self.complete = installed.complete
        if self.symptoms:
            self.fields["symptoms"] = tuple(self.symptoms)
        for fact in ("image", "vc_runtime", "link"):
            values = [str(source.said.value) for source in self.said.by_fact.get(fact, ())]
            if values:
                self.extra[fact] = tuple(dict.fromkeys(values))

    def _put(self, name: str, make: Callable[[], object]) -> None:
        value = make()
        if value is not NOTHING:
            self.fields[name] = value

    def _build_tools(self) -> object:
        found = {s.said.value for s in self.said.by_fact.get("compiler", ())}
        (one, *others) = found or (NOTHING,)
        return BuildTools(cc=one) if isinstance(one, Compiler) and not others else NOTHING

    def _platform(self) -> object:
        if unknown := self.said.clash("platform.system", "platform.machine", "platform.wsl"):
            return unknown
        system = self.said.text("platform.system")
        machine = self.said.text("platform.machine", compatible=same_machine)
        if system is None and machine is None:
            return NOTHING
        distribution = self.said.text("platform.distribution")
        like = self.said.one("platform.like")
        wsl = self.said.one("platform.wsl")
        if system is None:
            return NOTHING if machine is None else Platform(system="", machine=machine)
        return Platform(
            system=system,
            machine=machine or "",
            name=self.said.text("platform.name") or "",
            distribution=distribution,
            like=like if isinstance(like, tuple) and distribution else (),
            version=self.said.text("platform.version"),
            kernel=self.said.text("platform.kernel"),
            libc=self.said.text("platform.libc"),
            libc_version=self._libc_version(),
            wsl=cast("Literal[1, 2]", wsl) if wsl in (1, 2) else None,
            emulated=None,
            jetson=self.said.one("platform.jetson") is True,
        )

    def _libc_version(self) -> str | None:
        """Return the version of the C library, where the Python that told it tells it rightly."""
        if (said := self.said.text("platform.libc_version")) is not None:
            return said
        version = _numbers(self.said.text("interpreter.version", compatible=same_prefix) or "")
        if version >= (3, 8) and (said := self.said.text("platform.libc_of_3_8")):
            return said
        return self.said.text("platform.libc_of_3_9") if version >= (3, 9) else None

    def _interpreter(self) -> object:
        self._leave_out_other_pythons()
        if unknown := self.said.clash("interpreter.version", "interpreter.bits"):
            return unknown
        version = self.said.text("interpreter.version", compatible=same_prefix)
        bits = self.said.one("interpreter.bits")
        executable = self.said.text("interpreter.executable")
        prefix = self.said.text("interpreter.prefix", compatible=same_path)
        kind = self.said.text("interpreter.kind")
        user_site = self.said.text("interpreter.user_site", compatible=same_path)
        if (version, executable, prefix, user_site, kind) == (None,) * 5 and bits is ABSENT:
            return NOTHING
        site = self.said.text("interpreter.site_packages", compatible=same_path)
        machine = self.said.text("interpreter.machine") or ""
        installer = self.said.text("interpreter.installer")
        in_conda = kind == "conda" or (kind is None and prefix is None)
        if installer is None and isinstance(self.fields.get("conda"), Conda) and in_conda:
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
            implementation=self.said.text("interpreter.implementation") or "cpython",
            free_threaded=self.said.one("interpreter.free_threaded") is True,
            user_site=user_site,
            site_packages=(site,) if site else (),
            installer=installer or "pip",
            redacted=not executable,
        )

    def _leave_out_other_pythons(self) -> None:
        """Drop what paths tell of a Python other than the one that named itself."""
        executable = self.said.text("interpreter.executable")
        own = _prefix_of(executable) if executable else None
        prefixes = [s.said.value for s in self.said.by_fact.get("interpreter.prefix", ())]
        if own is None or any(same_path(own, prefix) for prefix in prefixes):
            return
        for fact in ("version", "prefix", "kind", "site_packages", "user_site"):
            stated = self.said.by_fact.get(f"interpreter.{fact}", [])
            kept = [s for s in stated if s.said.layout != LAYOUT_OF_PATHS]
            if kept:
                self.said.by_fact[f"interpreter.{fact}"] = kept
            else:
                self.said.by_fact.pop(f"interpreter.{fact}", None)
        here = Said("interpreter.prefix", own, LAYOUT_OF_PATHS, TOLD)
        self.said.by_fact.setdefault("interpreter.prefix", []).append(Source(here, ""))
        if kind := kind_of(own):
            said = Said("interpreter.kind", kind, LAYOUT_OF_PATHS, TOLD)
            self.said.by_fact.setdefault("interpreter.kind", []).append(Source(said, ""))

    def _cpu(self) -> object:
        flags = self.said.one("cpu.flags")
        if not isinstance(flags, frozenset):
            return NOTHING
        cores = self.said.one("cpu.cores")
        return Cpu(self.said.text("cpu.model"), flags, cores if isinstance(cores, int) else None)

    def _container(self) -> object:
        kind = self.said.text("container.kind")
        if kind is None:
            return NOTHING
        hooked = self.said.one("container.gpu_hook")
        return Container(kind, hooked if isinstance(hooked, bool) else None)

    def _limits(self) -> object:
        size, free = self.said.one("limits.shm"), self.said.one("limits.shm_free")
        if not isinstance(size, int):
            return NOTHING
        return Limits(shm=size, shm_free=free if isinstance(free, int) else None)

    def _variables(self) -> object:
        names = [
            fact.partition(".")[2] for fact in self.said.by_fact if fact.startswith("variables.")
        ]
        values = {name: self.said.text(f"variables.{name}") for name in names}
        known = {name: value for name, value in values.items() if value is not None}
        return MappingProxyType(dict(sorted(known.items()))) if known else NOTHING

    def _leftovers(self) -> object:
        found = [s.said.value for s in self.said.by_fact.get("leftover", ())]
        kept = [one for one in found if isinstance(one, Leftover)]
        return tuple(dict.fromkeys(kept)) if kept else NOTHING

    # ---- torch ---------------------------------------------------------------------------------

    def _trials(self) -> None:
        torch = self.trials.get("torch")
        imported = self.said.one("trial.imported", compatible=same_version)
        asked = [
            s.said.value
            for s in self.said.by_fact.get("torch.version", ())
            if s.said.layout == "what Python printed"
        ]
        shown = isinstance(imported, str) and imported is not ABSENT
        if torch is not None and shown:
            values = (
                (f"{torch.error.type if torch.error else 'an error'}", "a traceback"),
                (f"torch {imported} was imported", "collect_env"),
            )
            conflict = Conflict("trial", values)
            self.said.conflicts.append(conflict)
            self.fields["trial"] = Unknown(conflict.reason)
        elif torch is not None:
            self.fields["trial"] = torch
        elif shown:
            self.fields["trial"] = ImportTrial("torch", "imported", 0.0, version=str(imported))
        elif asked:
            one = str(asked[-1]) if len(set(asked)) == 1 else None
            self.fields["trial"] = ImportTrial("torch", "imported", 0.0, version=one)
        elif self.said.one("trial.failed") is True:
            hidden = ErrorText("an exception", "collect_env does not say which")
            self.fields["trial"] = ImportTrial("torch", "raised", 0.0, error=hidden)
        companions = {n: t for n, t in self.trials.items() if n != "torch"}
        if companions:
            self.fields["companion_trials"] = MappingProxyType(companions)

    def _runtime(self) -> object:
        if unknown := self.said.clash("runtime.available"):
            return unknown
        available = self.said.one("runtime.available")
        if not isinstance(available, bool):
            return NOTHING
        seen = devices([s.said for s in self.said.sources if s.said.fact == "runtime.device"])
        version = self.said.one("torch.version", compatible=same_version)
        archs = self.said.one("runtime.arch_list")
        mps, xpu, cudnn = (self.said.one(f"runtime.{key}") for key in ("mps", "xpu", "cudnn"))
        reasons = [
            s.text
            for s in self.symptoms
            if s.name.startswith(("cuda-", "no-nvidia", "not-compiled"))
        ]
        return Runtime(
            version=version if isinstance(version, str) and version is not ABSENT else "",
            cuda=self.said.text("torch.cuda"),
            hip=self.said.text("torch.hip"),
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
