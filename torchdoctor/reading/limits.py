"""Read what the host probe said of limits, and of the processes that work within them.

Sources: the kernel's cgroup-v1 and cgroup-v2 guides; proc_pid_status(5), proc_pid_smaps(5).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.facts import Limits, Workers
from torchdoctor.reading.said import Said, Unreadable, said

if TYPE_CHECKING:
    from torchdoctor.child import Run

NO_LIMIT = 1 << 60
"""Control groups of version 1 spell "no limit" as the largest number of whole pages."""
_KILLS = re.compile(r"(?m)^oom_kill (\d{1,18})$")


def limits(run: Run) -> Limits:
    """Read what the system grants; raises Unreadable."""
    answer = said(run, "shm", "cgroup", "limits", "cpu")
    groups = answer.parts("cgroup")
    processor = answer.part("cpu")
    shares = [share for group in groups if (share := _cpu_share(group)) is not None]
    affinity, count = processor.number("affinity"), processor.number("count")
    if affinity and count and affinity < count:
        shares.append(float(affinity))
    limited = [(limit, group) for group in groups if (limit := _limit(group)) is not None]
    memory, tightest = min(limited, key=lambda each: each[0], default=(None, None))
    # Without a limit, what was killed in the own group was killed for the whole machine's sake.
    counted = tightest or next((group for group in groups if _kills(group) is not None), None)
    return Limits(
        shm=answer.part("shm").number("size"),
        shm_free=answer.part("shm").number("free"),
        memory=memory,
        cpus=min(shares, default=None),
        open_files=_soft(answer.part("limits"), "NOFILE"),
        locked_memory=_soft(answer.part("limits"), "MEMLOCK"),
        memory_used=_bytes(tightest, "memory.current", "memory.usage_in_bytes"),
        memory_peak=_bytes(tightest, "memory.peak", "memory.max_usage_in_bytes"),
        oom_kills=_kills(counted) if counted else None,
        ram=_kilobytes(answer.part("memory").line("MemTotal")),
    )


def workers(run: Run) -> tuple[Workers, ...]:
    """Read which programs have worker processes, and their memory; raises Unreadable."""
    found = []
    for one in said(run, "workers").parts("workers"):
        program = _kilobytes(one.line("anonymous"))
        each = _largest(one, "workers")
        count = one.number("count")
        if program is None or each is None or not count:
            continue  # ended while it was looked at
        named = one.number("named") == count
        own = _largest(one, "own")
        found.append(Workers(count, named, program, each, own, one.flag("same_group")))
    return tuple(found)


def _largest(one: Said, key: str) -> int | None:
    """Return the largest of some amounts of memory; those that could not be read are None."""
    given = one.data.get(key)
    if not isinstance(given, list) or not all(t is None or isinstance(t, str) for t in given):
        raise Unreadable(f"workers: {key} is not what the probe gives")
    return max((n for text in given if (n := _kilobytes(text)) is not None), default=None)


def _kilobytes(text: str | None) -> int | None:
    """Return an amount as the kernel writes it ("1234 kB"), in bytes."""
    number, _, unit = (text or "").partition(" ")
    return int(number) * 1024 if unit == "kB" and _is_number(number) else None


def _limit(group: Said) -> int | None:
    limit = _bytes(group, "memory.max", "memory.limit_in_bytes")
    return limit if limit is not None and limit < NO_LIMIT else None


def _bytes(group: Said | None, *names: str) -> int | None:
    """Return the number in the first of the files *names* that the group has."""
    lines = (group.line(name) for name in names) if group else ()
    return next((int(line) for line in lines if line is not None and _is_number(line)), None)


def _kills(group: Said) -> int | None:
    text = group.text("memory.events") or group.text("memory.oom_control") or ""
    found = _KILLS.search(text)
    return int(found[1]) if found else None


def _cpu_share(group: Said) -> float | None:
    quota, _, period = (group.line("cpu.max") or "").partition(" ")
    if not quota:
        quota = group.line("cpu.cfs_quota_us") or ""
        period = group.line("cpu.cfs_period_us") or ""
    if not (_is_number(quota) and _is_number(period)) or int(period) == 0:
        return None
    return int(quota) / int(period)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20  # noqa: PLR2004 - 64 bits


def _soft(piece: Said, name: str) -> int | None:
    pair = piece.data.get(name)
    if pair is None:
        return None
    if not isinstance(pair, list) or not pair:
        raise Unreadable(f"limits: {name} is not what the probe gives")
    number = Said({name: pair[0]}, piece.where).number(name, least=-1)
    return None if number is None or number < 0 or number >= NO_LIMIT else number
