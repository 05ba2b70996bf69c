"""Packages, and the torch among them, out of what pip, conda and torch itself say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import cast

from torchdoctor.facts import Build, Conda, CondaPackage, Distribution, ImportTrial, Module, Unknown
from torchdoctor.reading.builds import tag_of
from torchdoctor.reading.pasted import failure
from torchdoctor.reading.pasted.said import TOLD, CondaRow, Package, Whole
from torchdoctor.reading.pasted.statements import (
    ABSENT,
    NOTHING,
    Conflict,
    Source,
    Statements,
    finer,
    same_path,
    same_version,
)

SHORT_LIST = 12
"""Packages of a fresh environment; such a list needs no name past torch to be whole."""


@dataclass
class Installed:
    """What is installed; *fields* are the facts found so far."""

    said: Statements
    trials: Mapping[str, ImportTrial]
    fields: Mapping[str, object]
    complete: set[str] = field(default_factory=set)
    """Which of "distributions" and "conda" show everything."""
    _listed: frozenset[str] = frozenset()

    def distributions(self) -> object:
        """Return the packages of pip; a later word of an installer replaces an earlier one."""
        stated = self.said.by_fact.get("package", [])
        gone = {s.said.value: s for s in self.said.by_fact.get("gone", ())}
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
        return tuple(found) if found or whole is not None else NOTHING

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
            if not same_version(chosen, version):
                told = (versions[0][1], source)
                values = tuple((_package(s).version, s.name) for s in told)
                self.said.conflicts.append(Conflict(f"distributions.{name}", values))
                return False
            chosen = cast("str", finer(chosen, version))
        return True

    def _copy(self, sources: Sequence[Source]) -> Distribution:
        packages = [_package(source) for source in sources]
        version = packages[0].version
        for one in packages[1:]:
            version = cast("str", finer(version, one.version))
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
        found = [s.said.value for s in self.said.by_fact.get("whole", ())]
        lists = [one.names for one in found if isinstance(one, Whole) and one.what == what]
        return lists[0] if len(lists) == 1 else None

    def conda(self) -> object:
        """Return what conda installed, without rows that contradict each other."""
        rows: dict[str, CondaRow] = {}
        bad: set[str] = set()
        for source in self.said.by_fact.get("conda", ()):
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
                    self.said.conflicts.append(Conflict(f"conda.{row.name}", values))
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
        if not kept and "conda.here" not in self.said.by_fact:
            return NOTHING
        return Conda(kept, prefix=self.said.text("conda.prefix", compatible=same_path) or "")

    # ---- torch ---------------------------------------------------------------------------------

    def build(self, name: str) -> object:  # noqa: PLR0911 - one answer for each state
        """Return the build of *name*, None when it is not there, unknown when sources disagree."""
        printed = self.said.one(f"{name}.version", compatible=same_version)
        if isinstance(printed, Conflict):
            return Unknown(printed.reason)
        copies = [
            d
            for d in cast("tuple[Distribution, ...]", self.fields.get("distributions", ()))
            if d.name == name
        ]
        trial = self.trials.get(name)
        if printed is ABSENT and trial is not None and failure.missing(trial):
            return None
        if printed is ABSENT and not copies and self.said.one(f"{name}.absent") is True:
            return None
        contested = next(
            (c for c in self.said.conflicts if c.fact == f"distributions.{name}"), None
        )
        conda = self._conda_build(name)
        if printed is not ABSENT:
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
            return None if self._cut_after(name) else NOTHING
        else:
            return NOTHING
        return self._assembled(name, version, copies, conda)

    def _has_no_accelerator(self) -> bool:
        """Tell whether torch says that it was built for none.

        ``torch.version.cuda`` alone is also None for AMD's and Intel's builds, which have a label.
        """
        if self.said.one("torch.no_accelerator") is True:
            return True
        listed = self.fields.get("gpus")
        others = isinstance(listed, tuple) and any(g.vendor in ("amd", "intel") for g in listed)
        return (
            "torch.cuda" in self.said.by_fact and self.said.one("torch.cuda") is None and not others
        )

    def _cut_after(self, name: str) -> bool:
        """Tell whether the list goes on past *name*, so that it was not cut before it."""
        return max(self._listed, default="") > name or len(self._listed) < SHORT_LIST

    def _assembled(
        self, name: str, version: str, copies: Sequence[Distribution], conda: CondaPackage | None
    ) -> Build:
        owner = next((c for c in copies if same_version(c.version, version)), None)
        if owner is not None:
            version = cast("str", finer(version, owner.version))
        said: dict[str, str | None] = {}
        cuda, hip, xpu, rocm = (
            (self.said.text(f"torch.{key}") for key in ("cuda", "hip", "xpu", "rocm"))
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
        file = self.said.text("torch.file") if name == "torch" else None
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
        return any(c.folder and not same_path(c.folder, site) for c in copies)

    def _conda_build(self, name: str) -> CondaPackage | None:
        conda = self.fields.get("conda")
        if not isinstance(conda, Conda):
            return None
        names = ("pytorch", "pytorch-gpu", "pytorch-cpu") if name == "torch" else (name,)
        return next((found for n in names if (found := conda.get(n)) is not None), None)

    def modules(self) -> object:
        """Return where torch was imported from, and which modules are not there."""
        found: dict[str, Module | None] = {}
        file = self.said.text("torch.file")
        trial = self.trials.get("torch")
        place = file or (trial.file if trial else None)
        if place and re.search(r"[\\/]torch[\\/]__init__\.py$", place):
            found["torch"] = Module(
                "torch", place, re.split(r"[\\/]torch[\\/]__init__\.py$", place)[0]
            )
        elif place and re.search(r"[\\/]torch\.py$", place):
            found["torch"] = Module("torch", place, re.split(r"[\\/]torch\.py$", place)[0])
        for name, one in self.trials.items():
            if failure.missing(one) and f"{name}.version" not in self.said.by_fact:
                found[name] = None
        return MappingProxyType(found) if found else NOTHING


_USER_SITE = re.compile(
    r"(?i)AppData[\\/]Roaming[\\/]Python|[\\/]\.local[\\/]lib[\\/]python|"
    r"LocalCache[\\/]local-packages"
)
_SITE_OF = re.compile(r"(?i)(.{1,400}[\\/](?:site|dist)-packages)[\\/]")
_NAMELESS_DEFAULTS = ("conda list", "collect_env")
"""Where a row without a channel is of Anaconda's own."""


def _package(source: Source) -> Package:
    return cast("Package", source.said.value)


def _channel(row: CondaRow) -> str:
    return (
        "defaults"
        if re.match(r"pkgs/", row.channel)
        else row.channel.rpartition("conda.anaconda.org/")[2]
    )
