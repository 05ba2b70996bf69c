"""GPUs and drivers as tools print them: nvidia-smi, lspci, rocminfo, rocm-smi, amd-smi, prose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from torchdoctor.facts import Device, Gpu, Toolkit
from torchdoctor.reading import nvidia_smi
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import LISTED, PRINTED, TOLD, Said
from torchdoctor.tables import drivers

_NVIDIA = re.compile(
    r"(?i)\b(?:NVIDIA|GeForce|Tesla|Quadro|TITAN|RTX|GTX|[AHBLV]\d{2,3}s?\b|GB\d{3}|GH\d{3}|Orin|"
    r"Xavier|Thor|T4\b|P\d{2,4}\b|K\d{2}\b|MX\d{3}|Jetson)"
)
_AMD = re.compile(
    r"(?i)\b(?:AMD|Advanced Micro Devices|Radeon|Instinct|MI\d{2,3}X?|gfx\d|Vega|FirePro)\b"
)
_INTEL = re.compile(r"(?i)\b(?:Intel|Arc\b|Iris|UHD Graphics|Data Center GPU (?:Max|Flex))")
_APPLE = re.compile(r"\bApple\b")
_GFX = re.compile(r"\b(gfx[0-9a-f]{3,5})(?::\S+)?")
_UUID = re.compile(r"\s*\(UUID: ?((?:GPU|MIG)-[0-9a-fA-F-]{8,40})\)\s*$")
_BUS = re.compile(r"\s*\(((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])\)\s*$")
MOST_WRITTEN = 16
SHORTEST_NAME, LONGEST_NAME = 3, 90
_NO_NAME = re.compile(r"https?:|[\\<>{}=]")


def of(text: str, index: int | None = None) -> Gpu | None:
    """Return the GPU that *text* names, None when it names none."""
    text = text.strip()
    uuid = bus = None
    if found := _UUID.search(text):
        uuid, text = found[1], text[: found.start()]
    if found := _BUS.search(text):
        bus, text = found[1], text[: found.start()]
    gfx = _GFX.search(text)
    name = re.sub(r"\s*\(gfx[^)]*\)", "", text).strip(" ,;")
    vendor = vendor_of(text)
    fits = SHORTEST_NAME <= len(name) <= LONGEST_NAME and not _NO_NAME.search(name)
    if vendor is None or not fits:
        return None
    return Gpu(name, vendor, index, uuid=uuid, bus=bus, gfx=gfx[1] if gfx else None)


def several(text: str) -> tuple[Gpu, ...]:
    """Return the GPUs of one kind that a person wrote down: "2x RTX 3090"."""
    name, count = text.strip(), 1
    if many := _MANY.match(name):
        count, name = min(int(many[1]), MOST_WRITTEN), many[2]
    gpu = None if re.search(r"[,;/]| and | or ", name) else of(name)
    return (gpu,) * count if gpu is not None else ()


def vendor_of(name: str) -> str | None:
    """Return who made the GPU called *name*, None when it does not tell."""
    marks = ((_AMD, "amd"), (_NVIDIA, "nvidia"), (_INTEL, "intel"), (_APPLE, "apple"))
    return next((vendor for mark, vendor in marks if mark.search(name)), None)


def with_mig(gpu: Gpu) -> Gpu:
    """Return *gpu* with MIG switched on."""
    return replace(gpu, mig=True)


# ---- nvidia-smi ---------------------------------------------------------------------------------

_SMI_HEADER = re.compile(r"NVIDIA-SMI +\S+ +(?:Driver|KMD) Version:")
_PAIR = re.compile(
    rf"(?:^|[|\s])(?:Driver|KMD) Version: *({drivers.RELEASE})(?![\w.]).{{0,60}}?CUDA (?:UMD "
    rf")?Version: *({nvidia_smi.CUDA})(?![\w.])"
)
_SMI_LINE = re.compile(r"\s*[|+]|\s*$|.{0,8}GPU {1,9}Name")
_SMI_FAILED = re.compile(
    r"Failed to (?:properly shut down|initialize) NVML|NVIDIA-SMI has failed|NVML library version"
    r"|No devices were found|Unable to determine the device handle|couldn't find libnvidia-ml"
)
_QUERIED = re.compile(r"--query-gpu[= ]([\w.,]{3,400})")
MOST_BLOCK = 400


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield what the lines of nvidia-smi and other lists of GPUs say."""
    yield from _nvidia_smi(lines)
    yield from _queries(lines)
    for line in lines:
        if line.kind == "output":
            text = line.text[:1000]
            yield from _pci(text, line.number)
            yield from _told(text, line.number)
            yield from _driver_lines(text, line)
    yield from _rocm(lines)


def _nvidia_smi(lines: Sequence[Line]) -> Iterator[Said]:
    at = 0
    while at < len(lines):
        text = lines[at].text
        if lines[at].kind == "output" and _SMI_HEADER.search(text):
            end = at + 1
            while end < len(lines) and end - at < MOST_BLOCK and _SMI_LINE.match(lines[end].text):
                end += 1
            yield from _smi_block(lines[at:end])
            at = end
            continue
        if lines[at].kind == "output" and len(text) < 400:  # noqa: PLR2004
            if _SMI_FAILED.search(text):
                yield from _smi_failure(lines[at : at + 3])
            elif pair := _PAIR.search(text):
                yield Said(
                    "driver.release", pair[1], "the header of nvidia-smi", TOLD, lines[at].number
                )
                yield Said(
                    "driver.cuda", pair[2], "the header of nvidia-smi", TOLD, lines[at].number
                )
        at += 1


def _smi_block(block: Sequence[Line]) -> Iterator[Said]:
    driver, found = nvidia_smi.read("\n".join(line.text for line in block))
    number = block[0].number
    if driver.release:
        yield Said("driver.release", driver.release, "nvidia-smi", PRINTED, number)
    if driver.cuda:
        yield Said("driver.cuda", driver.cuda, "nvidia-smi", PRINTED, number)
    for gpu in found:
        if gpu.name:
            vendor = vendor_of(gpu.name) or "nvidia"
            yield Said("gpu", replace(gpu, vendor=vendor), "nvidia-smi", PRINTED, number)


def _smi_failure(block: Sequence[Line]) -> Iterator[Said]:
    said = [block[0].text]
    said += [line.text for line in block[1:] if "NVML library version" in line.text]
    driver, _ = nvidia_smi.read("\n".join(said))
    number = block[0].number
    if driver.error:
        yield Said("driver.error", driver.error, "nvidia-smi", PRINTED, number)
        if driver.code is not None:
            yield Said("driver.code", driver.code, "nvidia-smi", PRINTED, number)
    if driver.library:
        yield Said("driver.library", driver.library, "nvidia-smi", PRINTED, number)


def _queries(lines: Sequence[Line]) -> Iterator[Said]:
    """Read the CSV that a query with named fields printed."""
    for place, line in enumerate(lines):
        asked = _QUERIED.search(line.text[:1000]) if line.kind == "command" else None
        if asked is None:
            continue
        fields = asked[1].split(",")
        rows = []
        for below in lines[place + 1 : place + 1 + nvidia_smi.MOST_GPUS]:
            if below.kind != "output" or below.text.count(",") != len(fields) - 1:
                break
            rows.append(below.text.strip())
        if "name" not in fields:
            yield from _capabilities(fields, lines[place + 1 : place + 6])
            continue
        known = [f for f in fields if f in nvidia_smi.FIELDS]
        if known != fields:
            fields = ["driver_version" if f == "driver_version" else f for f in fields]
        driver, found = nvidia_smi.read("\n".join(", ".join(_split(r)) for r in rows), fields)
        if driver.release:
            yield Said("driver.release", driver.release, "nvidia-smi", PRINTED, line.number)
        for gpu in found:
            if gpu.name and gpu.name != "name":
                yield Said("gpu", gpu, "nvidia-smi", PRINTED, line.number)


def _split(row: str) -> list[str]:
    return [cell.strip() for cell in row.split(",")]


def _capabilities(fields: Sequence[str], lines: Sequence[Line]) -> Iterator[Said]:
    if list(fields) != ["compute_cap"]:
        return
    index = 0
    for line in lines:
        if found := re.fullmatch(r"\s*([0-9]{1,2})\.([0-9])\s*", line.text):
            pair = (int(found[1]), int(found[2]))
            yield Said("capability", Device(index, "", pair), "nvidia-smi", PRINTED, line.number)
            index += 1


# ---- other tools and prose ----------------------------------------------------------------------

_PCI = re.compile(
    r"\s{0,4}((?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+"
    r"(?:VGA compatible controller|3D controller|Display controller|"
    r"Processing accelerators)(?: \[[0-9a-f]{4}\])?: (.{3,200})$"
)
_TOLD = re.compile(
    r"(?i)\s{0,4}(?:[-*] )?(?:GPU(?: type)?|Graphics card|GPU model|Video card|"
    r"GPUs?(?: used)?)(?: name)?\s{0,3}[:=] (\S.{2,100})$"
)
_MANY = re.compile(r"(\d{1,2}) ?[x\u00d7*] ?(\S.{2,80})$")
_TOLD_DRIVER = re.compile(
    rf"(?i)\s{{0,4}}(?:[-*] )?(?:NVIDIA )?driver(?: version)?\s?[:=]? ({drivers.RELEASE})"
    rf"(?![\w.])(?P<rest>.{{0,120}})"
)
_NVRM = re.compile(rf"NVRM version: .{{3,80}}?\s({drivers.RELEASE})(?:\s|$)")
_DPKG = re.compile(
    rf"\s{{0,3}}ii\s+(?:nvidia-driver|libnvidia-compute|"
    rf"nvidia-utils)-\d{{3}}\S*\s+({drivers.RELEASE})"
)
_RPM = re.compile(
    rf"\s{{0,3}}(?:nvidia-driver(?:-cuda|-libs|-NVML)?|nvidia-driver-latest[\w-]*|"
    rf"xorg-x11-drv-nvidia(?:-cuda)?)-(?:\d:)?({drivers.RELEASE})-"
)
_NVCC = re.compile(r"Cuda compilation tools, release (\d{1,2}\.\d{1,2})")
_FABRIC = re.compile(r"(?:nv|nvidia-)fabric-?manager")
_WORKS = re.compile(r"(?i)\bworks?\b|\bworked\b|\bfine\b|\bok\b|\bfixed\b|\bbefore\b")


def _pci(text: str, number: int) -> Iterator[Said]:
    found = _PCI.match(text)
    if found is None:
        return
    described = re.sub(r"\s*\((?:rev|prog-if) [^)]*\).*$", "", found[2])
    described = re.sub(r"\s*\[[0-9a-f]{4}:[0-9a-f]{4}\]", "", described)
    vendor = vendor_of(described.partition(" [")[0])
    marketing = re.search(r"\[((?!AMD/ATI)[^\[\]]{3,80})\]\s*$", described)
    if vendor in ("nvidia", "amd", "intel"):
        name = marketing[1] if marketing else described
        listed = Gpu(name[:LONGEST_NAME], vendor, bus=found[1].lower())
        yield Said("gpu", listed, "lspci", LISTED, number)


def _told(text: str, number: int) -> Iterator[Said]:
    if (found := _TOLD.match(text)) is None:
        return
    for gpu in several(found[1]):
        yield Said("gpu", gpu, "what was written", TOLD, number)


def _driver_lines(text: str, line: Line) -> Iterator[Said]:
    number = line.number
    if found := _NVRM.search(text):
        yield Said("driver.kernel_module", found[1], "/proc/driver/nvidia/version", PRINTED, number)
    elif found := _DPKG.match(text):
        yield Said("driver.library", found[1], "dpkg", LISTED, number)
    elif found := _RPM.match(text):
        yield Said("driver.library", found[1], "rpm", LISTED, number)
    elif found := _NVCC.search(text):
        yield Said("toolkit", Toolkit(found[1], "", "nvcc"), "nvcc", PRINTED, number)
    elif (found := _TOLD_DRIVER.match(text)) and "CUDA Version" not in text:
        if not _WORKS.search(found["rest"]):  # what works is not the state that is asked about
            yield Said("driver.release", found[1], "what was written", TOLD, number)
    elif _FABRIC.search(line.command) and "is-active" in line.command:
        state = {"inactive": "stopped", "failed": "stopped", "active": "running"}.get(text.strip())
        if state:
            yield Said("driver.fabric", state, "systemctl", PRINTED, number)


# ---- AMD ----------------------------------------------------------------------------------------

NEAR = 2
"""Lines from the name of an agent of rocminfo to its marketing name."""
_PROCESSOR = re.compile(r"Processor|Ryzen|EPYC|CPU")
_AGENT_NAME = re.compile(r"\s{1,6}Name:\s+(gfx[0-9a-f]{3,5})\s*$")
_ISA = re.compile(r"\s{1,8}Name:\s+amdgcn-amd-amdhsa--(gfx[0-9a-f]{3,5})\b")
_MARKETING = re.compile(r"\s{1,6}Marketing Name:\s+(\S.{1,80}?)\s*$")
_SMI_CARD = re.compile(
    r"\s{0,4}GPU\[(\d{1,2})\]\s*:\s*(Card [Ss]eries|Card [Mm]odel|GFX Version):\s+(\S.{0,80}?)\s*$"
)
_AMD_SMI = re.compile(
    r"\|\s*([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)\s+((?:AMD|Radeon)\b.{2,60}?)\s*\|"
)
_MARKET = re.compile(r"\s{2,12}(MARKET_NAME|TARGET_GRAPHICS_VERSION):\s+(\S.{1,80}?)\s*$")
_AGENT = re.compile(r"\s{0,4}Agent \d+")


def _rocm_part(lines: Sequence[Line]) -> Iterator[Said]:
    """Read a part of rocminfo, as grep takes it: the name stands above what it runs."""
    name = ""
    for line in lines:
        text = line.text[:400]
        if found := _ISA.match(text):
            yield Said("gpu", Gpu(name, "amd", gfx=found[1]), "rocminfo", PRINTED, line.number)
        elif found := _MARKETING.match(text):
            name = "" if _PROCESSOR.search(found[1]) else found[1]


def _rocm(  # noqa: C901 - four tools, one pass
    lines: Sequence[Line],
) -> Iterator[Said]:
    gfx: tuple[str, int] | None = None
    cards: dict[int, dict[str, str]] = {}
    market = ""
    if not any(_AGENT_NAME.match(line.text[:400]) for line in lines):
        yield from _rocm_part(lines)
    for line in lines:
        text = line.text[:400]
        if found := _AGENT_NAME.match(text):
            gfx = found[1], line.number
        elif _AGENT.match(text):
            gfx = None
        elif gfx and (found := _MARKETING.match(text)):
            if line.number - gfx[1] <= NEAR and not _PROCESSOR.search(found[1]):
                yield Said("gpu", Gpu(found[1], "amd", gfx=gfx[0]), "rocminfo", PRINTED, gfx[1])
            gfx = None
        elif found := _SMI_CARD.match(text):
            cards.setdefault(int(found[1]), {})[found[2].lower()] = found[3]
        elif found := _AMD_SMI.match(text):
            yield Said(
                "gpu", Gpu(found[2].strip(), "amd", bus=found[1]), "amd-smi", PRINTED, line.number
            )
        elif found := _MARKET.match(text):
            if found[1] == "MARKET_NAME":
                market = found[2]
            elif market:
                yield Said("gpu", Gpu(market, "amd", gfx=found[2]), "amd-smi", PRINTED, line.number)
                market = ""
    yield from _cards(cards)


def _cards(cards: Mapping[int, Mapping[str, str]]) -> Iterator[Said]:
    """Yield the GPUs that rocm-smi numbered."""
    for index, card in sorted(cards.items())[: nvidia_smi.MOST_GPUS]:
        names = [
            n
            for n in (card.get("card series"), card.get("card model"))
            if n and not n.startswith("0x") and n != "N/A"
        ]
        gfx_version = card.get("gfx version", "")
        if names or gfx_version.startswith("gfx"):
            yield Said(
                "gpu",
                Gpu(
                    names[0] if names else "",
                    "amd",
                    index,
                    gfx=gfx_version if gfx_version.startswith("gfx") else None,
                ),
                "rocm-smi",
                PRINTED,
            )


ORDER = (
    "nvidia-smi",
    "collect_env",
    "rocminfo",
    "amd-smi",
    "rocm-smi",
    "lspci",
    "what was written",
    "what Python printed",
    "a warning of torch",
)
"""Listings of GPUs, the fullest first."""
