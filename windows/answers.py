"""From the record of a machine to facts: what the loader would do, and the runtime it would take.

The record is what :mod:`.inventory` writes. It may come from anywhere: what is of another shape
raises :class:`Unreadable`, and nothing is guessed in its place.
"""

from __future__ import annotations

import ntpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast, get_args

from torchdoctor.facts import DllFile, DllLoad, Unknown, VcNeed

from . import startup
from .dll_facts import DllFacts, NotFacts, from_json
from .inventory import SCHEMA
from .loader import Folder, Load, Machine, Module, Problem, Role, base, find, load, normal
from .redist import (
    MSVCP,
    Judged,
    Registered,
    Winner,
    bears_mutex,
    judge,
    of_runtime,
    requirements,
    version,
)
from .startup import Answer, Install
from .tables import load as table

_ROLES = frozenset(get_args(Role))
MOST = 10_000


class Unreadable(ValueError):  # noqa: N818 - it is an answer, not an error
    """The record is not what the inventory writes."""


@dataclass(frozen=True, slots=True)
class Before:
    """What a process had done before torch: folders registered, DLLs loaded, by their paths."""

    registered: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()


def of(
    record: Mapping[str, object],
    *,
    registry: Mapping[str, str] | None = None,
    known_dlls: frozenset[str] | None = None,
    after: Mapping[str, Before] | None = None,
) -> dict[str, object]:
    """Return fields of :class:`torchdoctor.facts.Windows` from the *record* of a machine.

    *registry* has the VC++ runtimes that are said to be installed, by processor; *after* what
    processes had done before they imported torch. Raises Unreadable.
    """
    try:
        whole = _Whole(record, known_dlls)
    except (NotFacts, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"the record of the DLLs is damaged: {error}") from error
    return whole.fields(registry or {}, after or {})


class _Whole:
    """A machine made of a record, and what is asked of it."""

    def __init__(self, record: Mapping[str, object], known_dlls: frozenset[str] | None) -> None:
        if record.get("schema") != SCHEMA:
            raise Unreadable("the record of the DLLs is of another schema")
        self.folders = tuple(_folders(record["folders"]))
        self.release = _text(record, "release")
        self.install = Install(
            torch=_text(record, "torch"),
            exec_prefix=_text(record, "exec_prefix"),
            base_exec_prefix=_text(record, "base_exec_prefix"),
            userbase=_optional(record, "userbase"),
            cuda=_optional(record, "cuda"),
            nvtools=_optional(record, "nvtools"),
        )
        self.python = _text(record, "python")
        self.companions = {
            str(name): tuple(map(str, files))
            for name, files in cast("Mapping[str, list[str]]", record["companions"]).items()
        }
        longest = record.get("longest")
        self.longest = longest if isinstance(longest, int) else None
        strangers = record.get("strangers")
        self.strangers = tuple(map(str, strangers)) if isinstance(strangers, list) else None
        self.lib = ntpath.join(self.install.torch, "lib")
        self.machine = self._started(self.folders, known_dlls)

    def _started(self, folders: tuple[Folder, ...], known: frozenset[str] | None) -> Machine:
        processor = self._processor(folders)
        machine = Machine(folders, machine=processor, known_dlls=known)
        return startup.started(machine, self.python) if self.python else machine

    def _processor(self, folders: tuple[Folder, ...]) -> str:
        """Return the processor of the process: of its interpreter's DLL, else of torch's files."""
        for folder in folders:
            facts = folder.files.get(self.python.lower()) if self.python else None
            if facts and not facts.broken:
                return facts.machine
        return "x64"

    # ---- what is asked ----

    def fields(self, registry: Mapping[str, str], after: Mapping[str, Before]) -> dict[str, object]:
        known: dict[str, object] = {
            "copies": tuple(self._copies()),
            "strangers": (
                Unknown("torch has no RECORD") if self.strangers is None else self.strangers
            ),
            "longest": self.longest,
            "image_size": sum(f.size_of_image for f in self._own().values()) or None,
        }
        how = startup.sequence(self.release)
        home = self.machine.folder(self.lib)
        if how is None or home is None or not home.files:
            reason = (
                f"how torch {self.release} starts is not known"
                if how is None
                else "torch\\lib was not looked at"
            )
            return known | dict.fromkeys(
                ("torch", "renewed", "after", "companions", "needs"), Unknown(reason)
            )
        answer = startup.import_torch(self.machine, self.install, how)
        renewed = startup.import_torch(self._renewed(), self.install, how)
        later = {
            name: startup.import_torch(self._with(before), self.install, how)
            for name, before in {**self._carriers(), **after}.items()
        }
        return known | {
            "torch": self._load(answer),
            "renewed": self._load(renewed),
            "after": {name: self._load(one) for name, one in later.items()},
            "companions": (
                {
                    name: self._companion(answer.machine, files)
                    for name, files in self.companions.items()
                    if files
                }
                if answer.loads
                else Unknown("torch itself does not load")
            ),
            "needs": tuple(map(_need, self._judged(answer, registry))),
        }

    def _own(self) -> dict[str, DllFacts]:
        """Return the facts of torch's files, by path."""
        return {
            ntpath.join(path, name): facts
            for path in (self.lib, self.install.torch)
            if (folder := self.machine.folder(path))
            for name, facts in folder.files.items()
            if facts
        }

    def _copies(self) -> Iterator[DllFile]:
        seen = set()
        for folder in self.folders:
            facts = folder.files.get(MSVCP)
            path = ntpath.join(folder.path, MSVCP)
            if MSVCP in folder.files and normal(path) not in seen:
                seen.add(normal(path))
                yield DllFile(path, _version_of(facts), folder.role)

    def _renewed(self) -> Machine:
        """Return the machine with the newest VC++ in System32; what else is in it stays."""
        new = {
            row["name"]: None for row in table("runtime")["dll"] if row.get("redistributable", True)
        }
        folders = tuple(
            replace(f, files={**f.files, **new}) if f.role == "system32" else f
            for f in self.folders
        )
        return self._started(folders, self.machine.known_dlls)

    def _with(self, before: Before) -> Machine:
        """Return the process once it did what *before* says."""
        machine = self.machine
        for path in before.registered:
            machine = machine.register(path)
        loaded = dict(machine.loaded)
        for path in before.loaded:
            folder = machine.folder(ntpath.dirname(path))
            name = base(path)
            if folder and folder.files.get(name):
                loaded.setdefault(name, Module(path, folder.files[name]))
        return replace(machine, loaded=loaded)

    def _carriers(self) -> dict[str, Before]:
        """Return, by package, what happens when its older msvcp140.dll is loaded first."""
        found: dict[str, Before] = {}
        torch = normal(self.install.torch)
        for folder in self.folders:
            facts = folder.files.get(MSVCP)
            if folder.role != "package" or normal(folder.path).startswith(torch):
                continue
            if facts and facts.version and bears_mutex(facts.version) is False:
                name = _package_of(folder.path)
                found.setdefault(name, Before(loaded=(ntpath.join(folder.path, MSVCP),)))
        return found

    def _companion(self, machine: Machine, files: Iterable[str]) -> DllLoad:
        """Return what becomes of a companion's compiled files; of the first that fails."""
        assumed: list[str] = []
        for path in files:
            result = load(machine.register(ntpath.dirname(path)), path)
            assumed += result.assumed
            if result.problems:
                return self._of_load(path, result)
            machine = result.machine
        return DllLoad(assumed=tuple(dict.fromkeys(assumed)))

    def _judged(self, answer: Answer, registry: Mapping[str, str]) -> tuple[Judged, ...]:
        wanted = requirements(self._own())
        winners: dict[str, Winner | None] = {}
        for requirement in wanted:
            module = find(answer.machine, requirement.dll)
            facts = module.facts if module else None
            winners[requirement.dll] = (
                Winner(module.path, facts.version if facts else None) if module else None
            )
        known = [
            Registered("64", processor, version(text))
            for processor, text in registry.items()
            if re.fullmatch(r"\d+(\.\d+)*", text)
        ]
        return judge(wanted, winners, known, architecture=self.machine.machine)

    # ---- answers as facts ----

    def _load(self, answer: Answer) -> DllLoad:
        return self._made(
            answer.error,
            answer.named,
            (answer.problem, *answer.others) if answer.problem else (),
            hint=answer.hint,
            by_path=answer.by_path,
            assumed=answer.assumed,
            depends_on_order=answer.depends_on_order,
        )

    def _of_load(self, path: str, result: Load) -> DllLoad:
        return self._made(result.error, path, result.problems, assumed=result.assumed)

    def _made(  # noqa: PLR0913 - an answer has that many sides
        self,
        error: int | None,
        named: str,
        problems: tuple[Problem, ...],
        *,
        assumed: tuple[str, ...],
        hint: bool = False,
        by_path: tuple[str, ...] = (),
        depends_on_order: bool = False,
    ) -> DllLoad:
        problem = problems[0] if problems else None
        return DllLoad(
            error=error,
            named=named,
            culprit=problem.culprit if problem else "",
            kind=problem.kind if problem else "",
            place=self._place(problem.culprit) if problem else "",
            chain=problem.chain if problem else (),
            symbols=problem.symbols[:20] if problem else (),
            detail=problem.detail if problem else "",
            also=tuple(dict.fromkeys(p.culprit for p in problems[1:11])),
            hint=hint,
            by_path=by_path,
            assumed=assumed,
            depends_on_order=depends_on_order,
        )

    def _place(self, culprit: str) -> str:
        folder = ntpath.dirname(culprit)
        if not folder:
            return ""
        if normal(folder) in (normal(self.lib), normal(self.install.torch)):
            return "torch"
        roles = [f.role for f in self.folders if normal(f.path) == normal(folder)]
        return roles[0] if roles else "loaded"


def _package_of(path: str) -> str:
    """Return the package that a folder below site-packages belongs to."""
    parts = path.replace("/", "\\").split("\\")
    lower = [part.lower() for part in parts]
    place = lower.index("site-packages") + 1 if "site-packages" in lower else len(parts) - 1
    return parts[min(place, len(parts) - 1)]


def _need(judged: Judged) -> VcNeed:
    wanted, winner = judged.requirement, judged.winner
    return VcNeed(
        kind=wanted.kind,
        dll=wanted.dll,
        state=judged.state,
        asks=wanted.files[0] if wanted.files else "",
        at_least=_dotted(wanted.at_least),
        winner=DllFile(winner.path, _dotted(winner.version)) if winner else None,
        registered=_dotted(judged.registered),
        contradicts_registry=judged.contradicts_registry,
    )


def _dotted(numbers: tuple[int, ...] | None) -> str | None:
    return ".".join(map(str, numbers)) if numbers else None


def _version_of(facts: DllFacts | None) -> str | None:
    return _dotted(facts.version) if facts else None


def _text(record: Mapping[str, object], key: str) -> str:
    value = record[key]
    if not isinstance(value, str):
        raise Unreadable(f"{key} is no text")
    return value


def _optional(record: Mapping[str, object], key: str) -> str | None:
    return None if record.get(key) is None else _text(record, key)


def _folders(value: object) -> Iterator[Folder]:
    if not isinstance(value, list) or len(value) > MOST:
        raise Unreadable("folders is no list")
    for row in value:
        if not isinstance(row, dict):
            raise Unreadable("a folder is no object")
        files: dict[str, DllFacts | None] = {}
        for entry in cast("list[dict[str, object]]", row["files"]):
            name = _text(entry, "name")
            files[name.lower()] = None if entry.keys() == {"name"} else from_json(entry)
        for role in cast("list[str]", row["roles"]):
            if role not in _ROLES:
                raise Unreadable(f"{role!r} is no part that a folder plays")
            yield Folder(
                _text(row, "path"), cast("Role", role), files, complete=row["complete"] is True
            )


__all__ = ["Before", "Unreadable", "of", "of_runtime"]
