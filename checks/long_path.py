r"""On Windows, no path of the install is longer than the system takes.

How it shows: while torch is installed, ``[Errno 2] No such file or directory`` or WinError 206 for
a file with a very long path, which pip is about to write; pip's own hint on it names "Windows Long
Path support".

Why: Windows takes 260 characters unless long paths are switched on, and some folders use up most of
them, above all the Python of the Microsoft Store
(``AppData\Local\Packages\PythonSoftwareFoundation...``). torch is not installed then, or half.

A short path in the same message is a file that is not there, and another fault.

The fix is to switch long paths on (once, as administrator, then restart), or to install into a
short path, with a Python from python.org.

Sources: https://github.com/pytorch/pytorch/issues/23823,
https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation. Windows
itself was not at hand: the messages are those of public reports.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import dlls, effects, shells, steps
from torchdoctor.facts import Record, Symptom, Unknown, Windows, items_of
from torchdoctor.model import CannotTell, Commands, Evidence, Finding, Layer, Step

FAMILY = "files"
FINDS = ("windows-long-path",)

MOST = 260
NAMES_REPLACED = 12
"""How much shorter a path may be in a report whose names were taken out."""


def check(
    symptoms: tuple[Symptom, ...] | Unknown,
    windows: Windows | Unknown | None,
    records: Mapping[str, Record] | Unknown,
) -> Iterator[Finding]:
    """Count the characters of the path that could not be written, else of torch's longest one."""
    if isinstance(symptoms, Unknown) and not isinstance(windows, Windows):
        raise CannotTell(symptoms.reason)
    known = items_of(symptoms)
    every = [said for said in known if said.name == "path-too-long"]
    if not every:
        yield from _of_record(windows, records)
        return
    said = every[0]
    file = said.values.get("file", "")
    by_name = any("206" in one.text or "Long Path" in one.text for one in every)
    if not by_name and len(file) < MOST - NAMES_REPLACED:
        return
    length = f"{len(file)} characters" if file else f"more than {MOST} characters"
    yield Finding(
        "windows-long-path",
        "error",
        f"A path of {length} stopped the install; Windows takes {MOST} unless long paths are on.",
        (Evidence("symptoms", file or said.text.strip()[:300], said.source),),
        tuple(_steps()),
        confidence="certain" if len(file) >= MOST or not file else "likely",
    )


def _of_record(
    windows: Windows | Unknown | None, records: Mapping[str, Record] | Unknown
) -> Iterator[Finding]:
    """Tell of an install that is not whole where its longest path is too long."""
    record = None if isinstance(records, Unknown) else records.get("torch")
    if not isinstance(windows, Windows) or windows.long_paths is not False:
        return
    longest = windows.longest
    if record and record.missing_count and isinstance(longest, int) and longest >= MOST:
        yield Finding(
            "windows-long-path",
            "warning",
            f"A file of torch would have a path of {longest} characters, long paths are off in "
            f"Windows, and {record.missing_count} files of torch are not there.",
            (
                Evidence("windows.longest", str(longest), "RECORD"),
                Evidence("windows.long_paths", "off", "the registry"),
            ),
            tuple(_steps()),
            confidence="likely",
        )


def _steps() -> Iterator[Step]:
    key = r"HKLM:\SYSTEM\CurrentControlSet\Control\FileSystem"
    switch = steps.by_hand(
        "enable-long-paths",
        "Switch long paths on in Windows, restart, and install again",
        why="Python and pip can use them; only the setting of Windows is in the way.",
        layer=Layer.ENVIRONMENT,
        cost=steps.SMALL,
        effect=effects.then(effects.settled("path-too-long"), dlls.becomes(long_paths=True)),
        admin=True,
    )
    value = "-Name LongPathsEnabled -Value 1 -PropertyType DWORD -Force"
    registry = r"reg add HKLM\SYSTEM\CurrentControlSet\Control\FileSystem"
    yield replace(
        switch,
        commands=Commands(
            powershell=(f"New-ItemProperty -Path '{key}' {value}",),
            cmd=(f"{registry} /v LongPathsEnabled /t REG_DWORD /d 1 /f",),
        ),
        needs=("admin", "reboot"),
    )
    short = steps.by_hand(
        "install-into-short-path",
        r"Make a virtual environment with a short path, such as C:\v, and install torch there",
        why="The folder of this Python uses up most of the characters.",
        layer=Layer.ENVIRONMENT,
        cost=steps.ENVIRONMENT,
        effect=effects.then(effects.settled("path-too-long"), dlls.becomes(longest=effects.TO_TRY)),
    )
    yield replace(short, commands=shells.in_all([("python", "-m", "venv", r"C:\v")]))
