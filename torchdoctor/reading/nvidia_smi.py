"""Read what nvidia-smi prints: its table, its ``--version`` lines, its CSV, its failures.

From 610 on the header names the kernel driver and the CUDA of the user-space driver apart
("KMD Version", "CUDA UMD Version"); older ones say "Driver Version" and "CUDA Version".
Numbers, names and codes are matched, never whole sentences.

Sources: outputs of drivers 331 to 617 in public bug reports; the nvidia-smi manual for exit
codes and query fields; nvml.h for the numbers of errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchdoctor.facts import Driver, Gpu
from torchdoctor.tables import drivers

FIELDS = (
    *("index", "name", "uuid", "driver_version", "compute_cap", "memory.total", "pci.bus_id"),
    *("mig.mode.current", "compute_mode"),
)
"""The columns of a CSV without a header, when nothing else says which were asked for."""

MOST_LINES = 4000
LONGEST_LINE = 500
MOST_GPUS = 256
MEBIBYTE = 1 << 20

CUDA = r"[0-9]{1,2}\.[0-9]{1,2}"
_HEADER = re.compile(rf"NVIDIA-SMI +\S+ +(?:Driver|KMD) Version: *({drivers.RELEASE})(?![\w.])")
_HEADER_CUDA = re.compile(rf"CUDA (?:UMD )?Version: *({CUDA})(?![\w.])")
_VERSION = re.compile(
    rf"^ *(?:DRIVER|KMD) version *: *({drivers.RELEASE})(?![\w.])", re.MULTILINE | re.IGNORECASE
)
_VERSION_CUDA = re.compile(rf"^ *CUDA (?:UMD )?Version *: *({CUDA})(?![\w.])", re.MULTILINE)
_NVML = re.compile(rf"NVML (?:library )?version *: *({drivers.RELEASE})(?![\w.])", re.IGNORECASE)
_BUS = r"(?:[0-9A-Fa-f]{4}|[0-9A-Fa-f]{8}):[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_FIRST_ROW = re.compile(rf"^\s*\|\s+([0-9]{{1,3}})\s+(\S.{{0,80}}?)\s+(\S+)\s*\|\s+({_BUS})\s.*\|")
_SECOND_ROW = re.compile(r"MiB\s*/\s*([0-9]{1,9})MiB\s*\|\s*\S+\s+(\S.*?)\s*\|\s*$")
_THIRD_ROW = re.compile(r"\|\s*(Enabled|Disabled)\*?\s*\|\s*$")
_REFUSED = re.compile(r'Field "([^"]{1,80})" is not a valid field')

_CODES = (
    (18, re.compile(r"Driver/library version mismatch")),
    (12, re.compile(r"libnvidia-ml\.so|NVML Shared Library Not Found|nvml\.dll")),
    (9, re.compile(r"communicate with the NVIDIA driver|Driver Not Loaded")),
    (15, re.compile(r"GPU is lost")),
    (4, re.compile(r"Insufficient Permissions")),
    (17, re.compile(r"GPU access blocked by the operating system")),
    (6, re.compile(r"No devices were found")),
    (999, re.compile(r"Unknown Error")),
)
"""Numbers of nvml.h and the words that nvidia-smi has for them."""
_FAILURE = re.compile(
    r"Failed to (?:properly shut down|initialize) NVML"
    r"|communicate with the NVIDIA driver"
    r"|No devices were found"
    r"|libnvidia-ml\.so"
    r"|Unable to determine the device handle"
    r"|Insufficient Permissions"
    r"|GPU is lost"
)
_COMPUTE_MODES = {
    "default": "Default",
    "prohibited": "Prohibited",
    "e. process": "Exclusive_Process",
    "exclusive_process": "Exclusive_Process",
    "e. thread": "Exclusive_Thread",
    "exclusive_thread": "Exclusive_Thread",
}


def read(text: str, fields: Sequence[str] = FIELDS) -> tuple[Driver, tuple[Gpu, ...]]:
    """Return the driver and the GPUs that *text* tells of, whichever form it has.

    *fields* names the columns of a CSV that has no header. A name that the table cut short
    keeps its dots. A failure is ``Driver.error``, with the NVML number where the words are
    known; what cannot be read at all is ``Driver.garbage``. Never raises.
    """
    text = "\n".join(line[:LONGEST_LINE] for line in text.splitlines()[:MOST_LINES])
    csv_release, gpus = _csv(text, fields)
    if not gpus:
        gpus = _table(text)
    release = _first(text, _HEADER, _VERSION) or csv_release
    cuda = _first(text, _HEADER_CUDA, _VERSION_CUDA)
    error = next((line for line in text.splitlines() if _FAILURE.search(line)), None)
    refused = refused_field(text)
    return (
        Driver(
            release=release,
            cuda=cuda,
            source="nvidia-smi",
            library=_first(text, _NVML),
            error=error.strip(" |") if error else None,
            code=_code(text) if error else None,
            garbage=not (release or gpus or error or refused),
        ),
        gpus,
    )


def refused_field(text: str) -> str | None:
    """Return the query field that an older driver does not know, None when it took them all."""
    found = _REFUSED.search(text)
    return found[1] if found else None


def compute_mode(word: str) -> str | None:
    """Return a compute mode as the query spells it, from that spelling or the table's."""
    return _COMPUTE_MODES.get(word.strip().lower())


def _first(text: str, *patterns: re.Pattern[str]) -> str | None:
    found = (pattern.search(text) for pattern in patterns)
    return next((match[1] for match in found if match), None)


def _code(text: str) -> int | None:
    return next((code for code, words in _CODES if words.search(text)), None)


def _table(text: str) -> tuple[Gpu, ...]:
    """Read the rows of the table: two lines for a GPU, three since MIG is shown."""
    lines = text.splitlines()
    gpus: dict[int, Gpu] = {}
    for number, line in enumerate(lines):
        first = _FIRST_ROW.match(line)
        if first is None:
            continue
        block = []
        for below in lines[number + 1 : number + 3]:
            if not below.lstrip().startswith("|"):
                break
            block.append(below)
        second = _SECOND_ROW.search(block[0]) if block else None
        third = _THIRD_ROW.search(block[1]) if len(block) > 1 else None
        index = int(first[1])
        gpus[index] = Gpu(
            name="" if first[2] == "ERR!" else first[2],
            index=index,
            memory=int(second[1]) * MEBIBYTE if second else None,
            bus=first[4],
            mig=third[1] == "Enabled" if third else None,
            compute_mode=compute_mode(second[2]) if second else None,
        )
    return tuple(gpus[index] for index in sorted(gpus))[:MOST_GPUS]


def _csv(text: str, fields: Sequence[str]) -> tuple[str | None, tuple[Gpu, ...]]:
    """Read the rows of a query; a first row of column names replaces *fields*."""
    release = None
    gpus = []
    for line in text.splitlines()[:MOST_GPUS]:
        cells = [cell.strip() for cell in line.split(", ")]
        names = [cell.partition(" [")[0] for cell in cells]
        if "name" in names and "driver_version" in names:
            fields = names
            continue
        row = dict(zip(fields, cells, strict=False))
        if len(cells) != len(fields) or not _is_row(row):
            continue
        row = {k: v for k, v in row.items() if not re.fullmatch(r"\[.*\]|N/A|ERR!", v)}
        release = release or _whole(drivers.RELEASE, row.get("driver_version"))
        gpus.append(_of_row(row))
    return release, tuple(gpus)


def _is_row(row: dict[str, str]) -> bool:
    """Tell a row from other lines: something in it has to look like what a GPU has."""
    return bool(
        _whole(_BUS, row.get("pci.bus_id"))
        or _whole(r"GPU-[0-9a-fA-F-]{8,}", row.get("uuid"))
        or _whole(drivers.RELEASE, row.get("driver_version"))
    )


def _of_row(row: dict[str, str]) -> Gpu:
    index = _whole(r"[0-9]{1,3}", row.get("index"))
    capability = re.fullmatch(r"([0-9]{1,2})\.([0-9])", row.get("compute_cap", ""))
    memory = re.fullmatch(r"([0-9]{1,9})(?: MiB)?", row.get("memory.total", ""))
    return Gpu(
        name=row.get("name", ""),
        index=int(index) if index else None,
        capability=(int(capability[1]), int(capability[2])) if capability else None,
        memory=int(memory[1]) * MEBIBYTE if memory else None,
        uuid=row.get("uuid"),
        bus=row.get("pci.bus_id"),
        mig={"Enabled": True, "Disabled": False}.get(row.get("mig.mode.current", "")),
        compute_mode=compute_mode(row.get("compute_mode", "")),
    )


def _whole(pattern: str, text: str | None) -> str | None:
    return text if text is not None and re.fullmatch(pattern, text) else None
