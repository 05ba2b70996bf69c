"""How GPUs are linked: the matrix of ``nvidia-smi topo -m``.

NV# is NVLink, PIX and PXB are PCIe switches, PHB a host bridge, NODE and SYS the way through the
processor. Source: the legend below the matrix, and ``nvidia-smi topo --help``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import PRINTED, Said

LAYOUT = "nvidia-smi topo"
HEAD = re.compile(r"\s*(?:\x1b\S*)?GPU0(?:\s+(?:GPU|NIC|mlx)\S+)*(?:\s|$)")
ROW = re.compile(r"\s*GPU(\d{1,2})\s+((?:(?:X|NV\d{1,2}|SYS|NODE|PHB|PXB|PIX)(?:\s+|$)){1,64})")


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield each link between two GPUs of a whole matrix, as "GPU0 GPU1 NV12"."""
    at = 0
    while at < len(lines):
        head = HEAD.match(lines[at].text[:600]) if lines[at].kind == "output" else None
        if head is None:
            at += 1
            continue
        size = len(re.findall(r"GPU\d", head[0]))
        rows = [ROW.match(line.text[:600]) for line in lines[at + 1 : at + 1 + size]]
        found = [row for row in rows if row]
        if len(found) == size and [int(row[1]) for row in found] == list(range(size)):
            yield from _links(found, lines[at].number)
        at += 1 + len(found)


def _links(rows: Sequence[re.Match[str]], number: int) -> Iterator[Said]:
    for one, row in enumerate(rows):
        for other, link in enumerate(row[2].split()[: len(rows)]):
            if one < other:
                yield Said("link", f"GPU{one} GPU{other} {link}", LAYOUT, PRINTED, number)
