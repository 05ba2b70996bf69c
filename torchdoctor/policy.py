"""What a project says of its machines: ``[tool.torchdoctor]`` of pyproject.toml, torchdoctor.toml.

``require`` says what a machine must have, ``ignore`` which findings are known and borne, why and
until when, ``fail-on`` what makes a check fail. A finding whose time is over is borne no longer.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchdoctor.model import DoctorError, Finding
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.registry import Check
    from torchdoctor.report.document import Detail

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILES = ("torchdoctor.toml", "pyproject.toml")
KNOWN = ("require", "ignore", "fail-on", "lint")
VERSIONS = ("torch", "python", "cuda", "driver", "nccl", "capability")
"""What is required as versions: ">=2.6,<3"."""
SIZES = ("gpu-memory", "shm")
"""What is required as bytes: "24 GiB"."""
NUMBERS = ("gpus",)
PACKAGES = "packages"
FAIL_ON = ("error", "warning", "never")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ignored:
    """A finding that is borne: why, and up to which day."""

    name: str
    reason: str
    until: dt.date

    def holds(self, today: dt.date) -> bool:
        """Tell whether it is still borne on that day."""
        return today <= self.until


@dataclass(frozen=True, slots=True)
class Policy:
    """What one file says."""

    file: str
    require: Mapping[str, str] = field(default_factory=dict)
    """torch, driver, packages.numpy -> ">=2.6"; shm -> "8 GiB"."""
    ignore: tuple[Ignored, ...] = ()
    fail_on: str | None = None

    def bearing(self, checks: Mapping[str, Check], today: dt.date | None = None) -> Bearing:
        """Return *checks* as they are under this policy *today* (default: by the clock, UTC)."""
        day = today or dt.datetime.now(dt.timezone.utc).date()
        borne = [one.name for one in self.ignore if one.holds(day)]
        met: set[str] = set()
        return Bearing(self, quiet(checks, borne, met.add), met, day)


@dataclass(frozen=True, slots=True)
class Bearing:
    """The checks under a policy, and what of it came to bear."""

    policy: Policy
    checks: Mapping[str, Check]
    met: set[str]
    """The names of what was found and left out; complete once the checks have run."""
    day: dt.date

    def details(self) -> Iterator[Detail]:
        """Yield what people are told: what was left out, and what is borne no longer."""
        from torchdoctor.report.document import Detail  # noqa: PLC0415 - after the checks

        for one in self.policy.ignore:
            if one.holds(self.day):
                if one.name in self.met:
                    said = f"{one.name} is ignored until {one.until}: {one.reason}"
                    yield Detail("Policy", said)
            else:
                yield Detail(
                    "Policy", f"{one.name} was ignored until {one.until} and counts: {one.reason}"
                )

    def data(self) -> Mapping[str, object]:
        """Return the same for programs."""
        groups: dict[str, list[object]] = {"ignored": [], "expired": []}
        for one in self.policy.ignore:
            row = {"name": one.name, "reason": one.reason, "until": one.until.isoformat()}
            if not one.holds(self.day):
                groups["expired"].append(row)
            elif one.name in self.met:
                groups["ignored"].append(row)
        return {"policy": {"file": self.policy.file, **groups}}


@cache
def read(given: str) -> Policy:
    """Return the policy in the file *given*, or, where that is empty, in the nearest one.

    Raises:
        DoctorError: there is none, it cannot be read, or says what no policy can.

    """
    if given:
        found = _of(Path(given))
        if found is None:
            raise DoctorError(
                f"{given} has no [tool.torchdoctor]; a policy has require, ignore or fail-on.",
                file=given,
                kind="usage",
            )
        return found
    here = Path.cwd()
    for folder in (here, *here.parents):
        for name in FILES:
            if (folder / name).is_file() and (found := _of(folder / name)) is not None:
                return found
    raise DoctorError(
        "--policy: there is no torchdoctor.toml, and no pyproject.toml with [tool.torchdoctor], "
        "here or above; name the file.",
        kind="usage",
    )


def size(text: str) -> int | None:
    """Return how many bytes *text* says: "24 GiB", "8GB"; None where it is no size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        return None
    unit = _UNITS[match[2].lower()]
    if match[3]:
        unit = 1024 ** (("kmgt").index(match[2].lower()) + 1)
    return int(float(match[1]) * unit)


def quiet(
    checks: Mapping[str, Check], names: Iterable[str], told: Callable[[str], None]
) -> dict[str, Check]:
    """Return *checks* without findings called one of *names*; *told* hears the name of each."""
    hidden = frozenset(names)

    def without(run: Callable[..., Iterator[Finding]]) -> Callable[..., Iterator[Finding]]:
        def found(**facts: object) -> Iterator[Finding]:
            for finding in run(**facts):
                if finding.name in hidden:
                    told(finding.name)
                else:
                    yield finding

        return found

    return {
        name: replace(check, run=without(check.run)) if hidden & set(check.names) else check
        for name, check in checks.items()
    }


# ---- the file ------------------------------------------------------------------------------------


def _of(file: Path) -> Policy | None:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DoctorError(f"{file} cannot be read: {error}.", file=str(file)) from error
    tool = document.get("tool")
    table = tool.get("torchdoctor") if isinstance(tool, dict) else None
    if table is None and file.name != "pyproject.toml" and not isinstance(tool, dict):
        table = document
    if not isinstance(table, dict) or not set(table) - {"lint"}:
        return None
    if strange := sorted(set(table) - set(KNOWN)):
        raise _wrong(file, f"{strange[0]!r} is no setting; there are {', '.join(KNOWN)}")
    fail_on = table.get("fail-on")
    if fail_on is not None and fail_on not in FAIL_ON:
        raise _wrong(file, f"fail-on is {fail_on!r} and can be {', '.join(FAIL_ON)}")
    return Policy(
        str(file),
        dict(_required(file, table.get("require", {}))),
        tuple(_ignored(file, table.get("ignore", []))),
        fail_on,
    )


def _required(file: Path, table: object) -> Iterator[tuple[str, str]]:
    if not isinstance(table, dict):
        raise _wrong(file, "require is no table")
    for name, value in table.items():
        if name == PACKAGES:
            if not isinstance(value, dict):
                raise _wrong(file, "require.packages is no table")
            for package, versions in value.items():
                yield f"{PACKAGES}.{package}", _versions(file, f"{PACKAGES}.{package}", versions)
        elif name in VERSIONS:
            yield name, _versions(file, name, value)
        elif name in NUMBERS:
            given = f">={value}" if isinstance(value, int) else value
            yield name, _versions(file, name, given)
        elif name in SIZES:
            if not isinstance(value, str) or size(value) is None:
                raise _wrong(file, f'require.{name} is {value!r} and no size, like "24 GiB"')
            yield name, value
        else:
            known = ", ".join((*VERSIONS, *NUMBERS, *SIZES, PACKAGES))
            raise _wrong(file, f"require.{name} is unknown; there are {known}")


def _versions(file: Path, name: str, value: object) -> str:
    try:
        SpecifierSet(value if isinstance(value, str) else "?")
    except InvalidSpecifier as error:
        raise _wrong(file, f'require.{name} is {value!r} and not like ">=2.6,<3"') from error
    return str(value)


def _ignored(file: Path, rows: object) -> Iterator[Ignored]:
    if not isinstance(rows, list):
        raise _wrong(file, "ignore is not written as [[ignore]]")
    for row in rows:
        given = row if isinstance(row, dict) else {}
        name, reason, until = given.get("name"), given.get("reason"), given.get("until")
        if not isinstance(name, str) or not isinstance(reason, str) or not reason.strip():
            raise _wrong(file, "each ignore has the name of a finding and a reason")
        if not isinstance(until, dt.date) or isinstance(until, dt.datetime):
            raise _wrong(file, f"ignore {name} has no day at which it ends: until = 2027-01-31")
        if strange := sorted(set(given) - {"name", "reason", "until"}):
            raise _wrong(file, f"ignore {name}: {strange[0]!r} is unknown")
        yield Ignored(name, reason, until)


def _wrong(file: Path, what: str) -> DoctorError:
    return DoctorError(f"{file}: {what}.", file=str(file), kind="usage")
